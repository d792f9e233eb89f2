"""Titles and given names, with the gender that they tell.

>>> TITLES["mrs."], TITLES["captain"], "heathcliff" in MALE_NAMES, "emma" in FEMALE_NAMES
('female', 'male', True, True)
"""

from __future__ import annotations

from netclust.models.coreference.mentions.lexicon.facts import Gender
from netclust.models.coreference.mentions.lexicon.word_sets import word_set

__all__ = [
    "FEMALE_NAMES",
    "MALE_NAMES",
    "PLACE_NAMES",
    "SURNAMES_LIKE_PLACES",
    "TITLES",
    "name_gender",
]

_MALE_TITLES = """mr mr. mister sir lord king prince duke earl count baron baronet marquis marquess viscount emperor
squire esquire esq esq. uncle grandfather father brother monsieur m. mons. herr signor señor senor don dom abbé abbe
friar fra pope cardinal bishop archbishop deacon captain capt capt. colonel col. general gen. major maj. lieutenant
lieut. lt. sergeant sergt. sgt. corporal private admiral commodore commander constable inspector reverend rev rev.
rabbi sultan shah czar tsar kaiser sheik sheikh khan rajah pasha maestro master sheriff deputy parson vicar curate
grandpa granddad papa dad daddy pa mynheer meinherr sahib father-in-law brother-in-law alderman mate bo's'n"""
_FEMALE_TITLES = """mrs mrs. miss ms ms. mistress lady queen princess duchess countess baroness marchioness viscountess
empress dame aunt auntie aunty grandmother mother sister madame mme mme. mademoiselle mlle mlle. madam ma'am frau
fräulein fraulein signora signorina señora senora señorita senorita donna doña abbess czarina tsarina sultana granny
grandma mamma mama mummy mum mom ma widow goody nurse ayah matron sister-in-law mother-in-law"""
_OTHER_TITLES = """dr dr. doctor prof prof. professor president judge justice chief senator governor mayor minister
secretary comrade cousin saint st st. baby little young old poor dear hon hon. honorable honourable coach detective
officer agent ambassador chancellor chairman congressman congresswoman representative premier attorney messrs messrs.
sieur mayor"""

TITLES: dict[str, Gender] = {
    **dict.fromkeys(_OTHER_TITLES.split(), "unknown"),
    **dict.fromkeys(_MALE_TITLES.split(), "male"),
    **dict.fromkeys(_FEMALE_TITLES.split(), "female"),
}
for _word in ("little", "young", "old", "poor", "dear", "baby", "private"):  # a title only before a name
    TITLES.pop(_word, None)
for _word in ("congressman", "chairman", "messrs", "messrs."):
    TITLES[_word] = "male"
TITLES["congresswoman"] = "female"
_BEFORE_SURNAMES = frozenset(TITLES) - word_set("cousin comrade saint st st.")

MALE_NAMES = word_set(
    """aaron abel abner abraham abram adam adolphus adrian albert alec alexander alexis alfred algernon allan allen alan
    alonzo alphonse ambrose amos anatole andrew andre andrei andy angelo angus anselm anthony antony antoine antonio
    archibald archie archer ariel arnold arthur arturo asa asher aubrey august augustine augustus austin axel baldwin
    balthazar barnaby barney bartholomew bartle basil benedict benjamin ben bennie benny bernard bert bertie bertram
    bevis bill billy blake bob bobby boris brad bradley brian bruce bruno bryan bud burton byron caesar cain caleb
    calvin carl carlo carlos casper cassius cecil cedric charles charley charlie chester christian christopher clarence
    claude claudius clayton clement clifford clinton clive colin conrad constantine cornelius cosmo craig crispin
    cuthbert cyril cyrus dan daniel danny dante darcy daryl dave david davy dean denis dennis derek desmond dick
    dimitri dmitri dominic don donald dorian douglas duncan dwight earnest ebenezer edgar edmond edmund eduardo edward
    edwin egbert eli elias elijah elisha elliot ellis elmer emanuel emil emile enoch enrico ephraim erasmus eric erik
    ernest ethan eugene eustace evan everard everett ezekiel ezra fabian felix ferdinand fergus fernando fitzwilliam
    floyd francis francisco francois frank franklin franz fred freddie freddy frederic frederick fritz fyodor gabriel
    gareth garrett gary gaston geoffrey george gerald gerard gideon gilbert giles giovanni godfrey gordon graham grant
    gregory griffith guido guillaume gus gustav gustave guy hal hamish hamlet hank hannibal hans harold harris harrison
    harry harvey hayden heathcliff hector henri henry herbert hercules herman hermann hezekiah hilary hiram homer
    horace horatio howard hubert huck huckleberry hugh hugo humphrey ian ibrahim ichabod ignatius igor immanuel ira
    isaac isaiah isambard ishmael israel ivan ivanhoe jack jackie jacob jacques jacopo jake james jamie jan jared
    jarvis jason jasper jay jean jed jeff jefferson jeffrey jem jeremiah jeremy jerome jerry jesse jim jimmie jimmy
    joachim job joe joel joey john johann johnnie johnny jon jonah jonas jonathan jordan jorge jos jose joseph josh
    joshua josiah juan jude jules julian julius justin karl keith ken kenneth kevin kit konrad kurt lambert lance
    lancelot larry laurence laurie lawrence lazarus leander lee leo leon leonard leopold leroy leslie lester levi
    lewis lionel llewellyn lloyd lorenzo louis lucas lucian lucien lucius luigi luis luke luther lyman malcolm manuel
    marcel marco marcus mario mark marmaduke marshall martin marvin mat matt matthew maurice max maxim maximilian
    melville melvin merlin michael michel miguel mike mikhail miles milton mitchell montague mordecai morgan morris
    mortimer moses murray napoleon nat nathan nathaniel ned neil nelson neville nicholas nick nicolas nigel noah noel
    norman octavius olaf oliver omar orlando orson oscar osmond oswald otis otto owen pablo paolo pat patrick paul
    pedro percival percy perry peter phil philip phillip phineas pierre piers pip quentin quincy rafael ralph ramon
    randolph raoul raphael ray raymond reggie reginald reuben rex rhett ricardo richard rick robert roberto robin rod
    roderick rodney rodolphe roger roland rolf roman romeo ronald rory roscoe ross rowland roy rudolf rudolph rufus
    rupert russell sam sammy samson samuel sancho saul sawyer scott sean sebastian septimus serge seth seymour shane
    sherlock sidney siegfried sigmund silas silvester simon sinbad solomon spencer stanley stephen steve steven stewart
    stuart sydney sylvester tad ted teddy terence thaddeus theobald theodore theophilus thomas thornton tim timothy
    titus tobias toby tom tommy tony tristram tyler ulysses uriah valentine vasily vernon victor vincent virgil
    vladimir vronsky wallace walter ward warren washington wayne wesley wilbur wilfred wilfrid wilhelm will willard
    william willie willy wilson winston wolfgang xavier zachariah zachary zack zeke ahmed ali mohammed muhammad hassan
    hussein mahmoud yusuf abdullah osama saddam vikram raj ravi chen wei ming hiroshi kenji akira pavel sergei yuri
    nikolai oleg boris jurgen gunther"""
)
FEMALE_NAMES = word_set(
    """abigail ada adela adelaide adele adelina adeline agatha agnes aileen albertine alexandra alexandrina alice alicia
    alison allegra alma althea amanda amelia amy anastasia andrea angela angelica angelina anita ann anna annabel
    annabella anne annette annie antoinette antonia arabella ariadne astrid audrey augusta aurelia aurora avis barbara
    bathsheba beatrice beatrix becky belinda bella belle berenice bernadette bertha bess bessie beth betsey betsy betty
    beulah bianca blanche bonnie brenda bridget brigitte brunhilda camilla candace carla carlotta carmen carol carole
    caroline carrie cassandra cassie catharine catherine cathy cecile cecilia cecily celeste celestine celia charity
    charlotte cherry chloe christabel christina christine clara clare clarissa clarice claudia clementina clementine
    cleopatra clotelle clotilde constance consuelo cora coral cordelia corinne cornelia cosette cressida cynthia daisy
    daphne deborah deirdre delia delilah della desdemona diana diane dinah dolly dolores dora dorcas doreen doris
    dorothea dorothy drusilla dulcie edith edna effie eileen elaine eleanor eleanora electra elena eliza elisa
    elisabeth elise elizabeth ella ellen elinor elsa elsie elspeth elvira emilia emily emma emmeline enid ernestine
    esmeralda estella estelle esther ethel etta eugenia eugenie eulalia eunice euphemia eustacia eva evangeline eve
    eveline evelina evelyn fanny fantine faith felicia felicity fern fidelia flora florence flossie frances francesca
    francine freda frederica frieda gabriella gabrielle genevieve georgia georgiana georgina geraldine germaine
    gertrude gillian gilberte gladys glenda gloria grace greta gretchen gretel griselda guinevere gwen gwendolen
    gwendolyn hannah harriet harriett hattie hazel heather hedda helen helena helene heloise henrietta hephzibah
    hepzibah hermia hermione hester hetty hilda honor honora hope hortense ida imogen ina inez ingrid irene iris irma
    isabel isabella isabelle isolde ivy jacqueline jane janet janice jeanne jeannie jemima jennie jennifer jenny
    jessica jessie jill joan joanna josephine joyce juanita judith judy julia juliana julie juliet june justine karen
    kate katharine katherine kathleen kathy katie katrina katy keziah kitty laetitia lara laura lavinia leah leila lena
    leonora letitia lettice letty lila lilian lilias lillian lily linda lisa lisbeth lizzie lizzy lois lola lolita lora
    lorna lottie lotty louisa louise lucia lucilla lucille lucinda lucretia lucy lulu lydia lyra mabel madeleine
    madeline madge magdalen magdalena maggie maisie mame mamie marcella marcia margaret margarita margery margot
    marguerite maria marian mariana marianne marie marietta marigold marilla marilyn marina marion marjorie marjory
    martha mary mathilda matilda mattie maud maude maudie maureen mavis may mazie medea meg megan mehitable melanie
    melinda melissa mercedes mercy meredith mildred millicent millie milly mimi mina minerva minna minnie mirabel
    miranda miriam moira moll mollie molly mona monica muriel myra myrtle nan nana nancy naomi natalia natalie natasha
    nell nellie nelly netta nettie nina nora norah norma octavia olga olive olivia olympia ophelia ottilie pamela
    pansy pat patience patricia patsy patty paula paulina pauline pearl peg peggy penelope perdita phoebe phyllis polly
    portia priscilla prudence prunella pru rachel ramona rebecca regina rhoda rita roberta rosa rosalie rosalind
    rosalba rosamond rosamund rosanna rose rosemary rosetta rosie rosina rowena roxana roxane ruby ruth sabina sabrina
    sadie sally salome samantha sandra sara sarah selina selma serena sharon sheila shirley sibyl sidonie silvia
    sophia sophie sophronia sophy stella stephanie sue sukey susan susanna susannah susie suzanne sybil sylvia tabitha
    tamara tamar tamsin tatiana tess tessa thea thelma theodora theresa therese thomasin tilda tilly trixie trudy una
    undine ursula valentina valerie vanessa venetia vera verena verity veronica victoria viola violet virginia vivian
    vivien wanda wendy wilhelmina winifred winnie winona xenia yolanda yvette yvonne zelda zenobia zillah zoe
    condoleezza hillary monica benazir indira aung fatima ayesha leila mei yoko akiko"""
)
SURNAMES_LIKE_PLACES = word_set(
    "hall temple dale graves hill wood woods mill mills field fields forest brook brooks lake rivers west north pond "
    "green banks heath moor marsh glen grove shore wells bridges"
)
PLACE_NAMES = word_set(
    """england scotland ireland wales britain france germany spain italy russia china india japan america europe africa
    asia australia canada egypt greece turkey norway sweden denmark holland belgium switzerland austria hungary poland
    portugal persia arabia syria palestine israel iran iraq mexico brazil cuba jamaica bermuda bohemia prussia flanders
    london paris berlin rome vienna madrid lisbon moscow petersburg athens constantinople jerusalem cairo calcutta
    bombay delhi peking pekin beijing tokyo shanghai dublin edinburgh glasgow liverpool manchester bristol bath oxford
    cambridge york canterbury dover brighton plymouth portsmouth southampton birmingham leeds newcastle boston
    philadelphia chicago washington baltimore orleans cincinnati brooklyn manhattan broadway newport saratoga
    virginia georgia carolina kentucky tennessee ohio indiana illinois wisconsin minnesota iowa missouri nebraska
    kansas texas california oregon colorado nevada arizona utah wyoming montana dakota maine vermont massachusetts
    connecticut pennsylvania maryland delaware jersey florida alabama mississippi louisiana arkansas michigan hampshire
    devonshire yorkshire lancashire kent surrey sussex essex hertfordshire derbyshire shropshire somersetshire
    gloucestershire wiltshire dorset dorsetshire cornwall norfolk suffolk lincolnshire warwickshire cumberland
    northumberland wessex thames seine rhine danube nile volga hudson mississippi ganges tiber severn atlantic pacific
    mediterranean baltic venice florence naples genoa milan turin geneva zurich brussels antwerp amsterdam hamburg
    munich dresden marseilles lyons versailles bordeaux calais boulogne havre quebec montreal toronto melbourne sydney
    natal durban zululand transvaal"""
)


def name_gender(words: list[str]) -> Gender:
    """The gender of a name from its title, else from its first word that is a given name of one gender alone.

    >>> name_gender(["Mrs.", "John", "Dashwood"]), name_gender(["Tom", "Sawyer"]), name_gender(["Dashwood"])
    ('female', 'male', 'unknown')
    """
    low = [word.lower() for word in words]
    for word in low[:-1] if len(low) > 1 else low:
        if TITLES.get(word, "unknown") != "unknown":
            return TITLES[word]
    if len(low) == 2 and low[0] in _BEFORE_SURNAMES:
        return "unknown"
    for word in low:
        male, female = word in MALE_NAMES, word in FEMALE_NAMES
        if male != female:
            return "male" if male else "female"
    return TITLES.get(low[-1], "unknown") if low else "unknown"

"""Common nouns: who is male or female, what is alive, what is a group, a place or a thing, and irregular plurals.

>>> NOUN_GENDER["widow"], "servant" in PEOPLE, "crowd" in GROUPS, "village" in PLACES, "letter" in THINGS
('female', True, True, True, True)
>>> singular("wives"), singular("ladies"), singular("glass"), singular("horses")
('wife', 'lady', 'glass', 'horse')
"""

from __future__ import annotations

from functools import lru_cache

from netclust.models.coreference.mentions.lexicon.facts import Gender
from netclust.models.coreference.mentions.lexicon.word_sets import word_set

__all__ = [
    "ANIMALS",
    "GROUPS",
    "IRREGULAR_PLURALS",
    "NOUN_GENDER",
    "PEOPLE",
    "PLACES",
    "THINGS",
    "VEHICLES",
    "singular",
]

_MALE = """man gentleman boy lad laddie fellow chap bloke guy youth father dad daddy papa pa pap grandfather grandpa
grandad son grandson stepson stepfather godfather godson brother stepbrother brother-in-law father-in-law son-in-law
uncle nephew husband bridegroom groom widower bachelor suitor swain beau king prince duke earl count baron baronet
marquis viscount emperor lord knight squire sire sir master mister monk friar priest bishop abbot pope cardinal curate
vicar parson clergyman minister rector deacon verger sexton monsieur signor sultan rajah shah czar actor waiter butler
footman coachman valet page steward host landlord hero god wizard sorcerer warlock heir policeman fireman postman
milkman salesman businessman tradesman craftsman workman seaman boatman fisherman huntsman horseman swordsman nobleman
statesman sportsman countryman kinsman watchman foreman yeoman freshman chairman congressman spokesman alderman
frenchman englishman irishman scotchman scotsman welshman dutchman sailor soldier captain colonel general lieutenant
sergeant corporal major admiral trooper cowboy rancher blacksmith carpenter mason cobbler bootblack highwayman
boatswain bo'sun cabin-boy errand-boy schoolboy newsboy stable-boy shepherd woodcutter woodsman bull stallion ram
rooster cock stag gander patriarch playboy stepson half-brother gent dandy fop blackguard scoundrel
ruffian rascal rogue villain pirate buccaneer mariner skipper barkeeper saloon-keeper bell-boy choirboy cavalier
gallant ploughman drayman hangman ostler barber forefather old-timer greybeard lama fakir sahib"""
_FEMALE = """woman lady gentlewoman girl lass lassie maid maiden damsel mother mamma mama ma mum mummy mom grandmother
grandma granny daughter granddaughter stepdaughter stepmother godmother goddaughter sister stepsister sister-in-law
mother-in-law daughter-in-law aunt auntie niece wife bride widow spinster fiancée fiancee queen princess duchess
countess baroness marchioness empress dame mistress madam madame mademoiselle miss nun abbess prioress actress waitress
housekeeper housemaid chambermaid parlourmaid parlormaid kitchenmaid nursemaid milkmaid dairymaid barmaid bridesmaid
handmaid maidservant governess nurse midwife hostess landlady heroine goddess witch sorceress enchantress heiress
stewardess seamstress sempstress laundress washerwoman charwoman policewoman businesswoman congresswoman spokeswoman
countrywoman noblewoman frenchwoman englishwoman irishwoman schoolgirl schoolmistress shepherdess matron matriarch
coquette belle debutante courtesan harlot hag crone shrew cow mare ewe hen lioness tigress doe vixen duenna chaperone
ladyship mermaid nymph fairy ballerina prima-donna poetess authoress murderess wench flirt
half-sister old-maid shop-girl servant-girl shopgirl lady's-maid dowager tomboy sweetheart"""
_EITHER = """person human soul body individual being creature mortal adult child baby infant babe kid toddler orphan
brat urchin darling dear dearest love one parent grandparent cousin relative relation kin twin spouse lover friend
companion comrade mate partner ally enemy foe rival neighbor neighbour stranger guest visitor caller host acquaintance
doctor physician surgeon dentist chemist apothecary lawyer solicitor barrister attorney judge magistrate clerk
secretary teacher schoolmaster tutor professor scholar student pupil master instructor author writer novelist poet
journalist editor reporter publisher printer artist painter sculptor musician singer dancer fiddler performer
comedian tragedian juggler servant slave attendant cook gardener driver conductor porter messenger guard sentinel
sentry warden jailer gaoler keeper officer official governor president senator ambassador consul spy detective
inspector constable agent merchant trader dealer shopkeeper grocer butcher baker tailor farmer peasant labourer laborer
worker employee employer boss owner proprietor manager director tenant lodger boarder landowner passenger traveller
traveler tourist pilgrim wanderer vagabond tramp beggar pauper thief robber burglar murderer criminal prisoner convict
captive victim witness culprit coward traitor tyrant rebel patriot leader chief chieftain ruler sovereign monarch
subject citizen native inhabitant villager townsman resident foreigner immigrant emigrant settler colonist pioneer
explorer hunter trapper scout guide warrior fighter indian christian heathen pagan jew
catholic protestant puritan quaker methodist missionary preacher saint sinner angel devil demon ghost spirit phantom
spectre apparition fool idiot simpleton genius philosopher scientist astronomer engineer inventor mechanic
millionaire banker broker speculator financier capitalist philanthropist politician diplomat expert amateur beginner
member candidate applicant client customer patient invalid sufferer reader listener speaker spectator observer
beholder onlooker passer-by bystander descendant ancestor forefather heir namesake successor predecessor favourite
favorite hostage peer noble aristocrat commoner american englander european african asian italian german russian
spaniard greek roman turk arab chinese japanese mexican australian canadian frenchie yankee londoner parisian dane
swede norwegian pole elder senior junior superior inferior youngster teenager veteran recruit volunteer murderess
somebody nobody anyone everybody housewife bookseller innkeeper gatekeeper bookkeeper lodging-house-keeper antagonist
protagonist opponent adversary assistant apprentice aide adviser advisor counsellor confidant accomplice creditor
debtor informant intruder interloper pedestrian rider walker runner swimmer climber bearer sender maker builder
lunatic madman maniac monster giant dwarf elf goblin wretch bandit outlaw gambler drunkard glutton miser hermit
prophet disciple apostle martyr believer anarchist socialist revolutionist dynamiter voter spokesperson analyst
investor consumer executive economist banker activist militant terrorist gunman suspect defendant plaintiff juror
prosecutor player coach athlete champion winner loser fan driver pilot astronaut sailor soldier"""
_ANIMALS = """animal beast creature horse pony colt foal mare donkey ass mule ox cow bull calf heifer sheep lamb goat
kid pig hog sow dog hound puppy pup cur terrier spaniel mastiff retriever bulldog setter cat kitten tabby rat mouse
rabbit hare fox wolf bear lion tiger leopard panther elephant camel monkey ape gorilla baboon deer stag doe buffalo
bison antelope bird eagle hawk falcon owl crow raven rook dove pigeon sparrow robin lark nightingale swallow thrush
blackbird cock hen chicken rooster duck goose swan turkey peacock parrot gull fish shark whale trout salmon snake
serpent lizard crocodile alligator frog toad tortoise turtle insect bee wasp fly moth butterfly spider ant beetle worm
steed charger nag cub squirrel badger hedgehog otter mole bat weasel ferret coyote wildcat dragon"""
_GROUPS = """family household crowd company party group band gang crew team club society committee council parliament
government nation tribe clan race people army regiment troop squadron brigade garrison fleet navy police audience
congregation congress senate jury mob multitude throng assembly public populace community class school staff firm
corporation corps board union association ministry cabinet court pair couple trio set lot circle generation mankind
humanity humankind gentry nobility aristocracy clergy peasantry folk kindred kinsfolk flock herd pack majority minority
procession host chorus choir orchestra order brotherhood fraternity sect church bank agency department press faculty
posterity rabble horde cavalry infantry militia posse delegation organization organisation institution
military administration faction coalition party enemy opposition bureau commission"""
_PLURAL_GROUPS = "people folk folks police cattle clergy gentry kinsfolk townsfolk gentlefolk poultry vermin"
_PLACES = """place country county kingdom empire realm province state colony territory republic city town village hamlet
suburb parish district quarter neighbourhood neighborhood region land continent island isle coast shore beach bay
harbour harbor port sea ocean lake pond river stream brook creek canal waterfall valley vale glen dale hill hillside
mountain cliff peak plain prairie meadow field moor heath marsh swamp bog desert forest wood woods woodland jungle
grove orchard garden park lawn green yard courtyard court street road lane avenue alley square terrace path highway
bridge crossing corner house home cottage cabin hut shanty mansion villa palace castle tower fort fortress manor hall
abbey monastery convent church chapel cathedral temple churchyard graveyard cemetery school college university academy
library museum theatre theater opera hotel inn tavern pub saloon restaurant café cafe shop store market factory mill
mine farm ranch barn stable shed outhouse warehouse office bank hospital asylum prison jail gaol dungeon station depot
dock wharf pier quay lodge apartment flat room bedroom chamber drawing-room dining-room sitting-room parlour parlor
kitchen cellar attic garret hallway corridor passage staircase landing porch veranda piazza balcony gallery cell study
nursery bathroom closet scullery pantry laundry lobby vestibule cave grave tomb building residence dwelling abode
premises establishment estate plantation homestead settlement camp tent headquarters world earth planet globe moon
universe heaven hell paradise north south east west border frontier capital metropolis downtown club-house lodgings
deck stage platform bar store-room schoolroom ball-room billiard-room smoking-room window-seat hearth doorway gateway
market-house workshop studio laboratory plaza boulevard piazza trail canyon mesa hollow gulch ravine gorge shoreline"""
_VEHICLES = """ship boat vessel schooner brig sloop frigate steamer steamboat yacht canoe barge raft ferry liner
carriage coach cab hansom chaise gig cart wagon waggon buggy omnibus bus tram trolley train car automobile motor
locomotive sleigh sledge dray phaeton brougham landau victoria chariot bicycle plane airplane aircraft balloon
submarine truck van rocket stage-coach post-chaise cutter whaler craft lugger dinghy gondola"""
_THINGS = """thing object matter affair fact idea thought opinion notion question answer word name letter note book page
story tale history paper newspaper poem song music picture portrait painting photograph map time day night morning
evening afternoon hour minute moment second week month year century age season spring summer autumn winter life death
birth heart mind head face eye ear nose mouth lip tooth tongue cheek chin brow forehead hair beard neck throat
shoulder arm elbow hand finger thumb fist breast chest back waist knee leg foot toe bone blood skin voice tone sound
noise silence cry laugh smile tear sigh look glance gaze expression countenance manner way habit custom character
nature temper disposition taste love hate fear hope joy grief sorrow pain pleasure anger pride shame pity curiosity
surprise wonder doubt sense feeling emotion passion desire wish dream sleep memory attention interest purpose reason
cause effect result end beginning middle part side top bottom edge line point circle shape form size length weight
number sum amount deal money pound shilling penny dollar cent coin gold silver iron wood stone glass water fire air wind
rain snow storm cloud sky star sun light shadow darkness dust smoke tree leaf flower grass bush branch root seed fruit
apple bread meat food breakfast dinner supper tea coffee wine beer table chair bed desk lamp candle clock watch bell
key lock box bag basket bottle cup plate dish knife fork spoon door window wall floor ceiling roof stair fireplace
chimney curtain carpet cloth dress coat hat bonnet shoe boot glove shirt cap cloak shawl gown handkerchief ring jewel
chain sword gun pistol rifle knife stick cane whip rope tool machine engine wheel work business trade job task duty
game play sport visit journey voyage walk ride trip dance ball war battle peace fight murder crime law right wrong
truth lie secret promise chance fortune luck fate danger trouble difficulty problem mistake accident event occasion
circumstance situation condition position case example kind sort manner piece bit share rest power force strength
weight speed motion step act action deed conduct behaviour behavior conversation talk speech language remark whisper
news report advice request order command offer price value cost bill debt rent wage salary income property wealth
education knowledge learning science art religion faith virtue vice sin beauty youth wisdom folly idea plan scheme
experience opportunity degree use sight view appearance presence absence distance direction start stop pause change
"""
IRREGULAR_PLURALS = {
    "men": "man", "women": "woman", "children": "child", "feet": "foot", "teeth": "tooth", "geese": "goose",
    "mice": "mouse", "oxen": "ox", "brethren": "brother", "wives": "wife", "lives": "life", "knives": "knife",
    "wolves": "wolf", "thieves": "thief", "selves": "self", "halves": "half", "leaves": "leaf", "calves": "calf",
    "loaves": "loaf", "shelves": "shelf", "scarves": "scarf", "hooves": "hoof", "elves": "elf", "wharves": "wharf",
    "dwarves": "dwarf", "midwives": "midwife", "housewives": "housewife", "dice": "die", "pence": "penny",
    "heroes": "hero", "echoes": "echo", "potatoes": "potato", "volcanoes": "volcano",
    "criteria": "criterion", "phenomena": "phenomenon", "strata": "stratum", "data": "datum", "media": "medium",
    "alumni": "alumnus", "cacti": "cactus", "crises": "crisis", "theses": "thesis", "analyses": "analysis",
    "oases": "oasis", "messieurs": "monsieur", "mesdames": "madame", "passers-by": "passer-by",
    "sisters-in-law": "sister-in-law", "brothers-in-law": "brother-in-law", "sons-in-law": "son-in-law",
    "daughters-in-law": "daughter-in-law", "boys": "boy", "folks": "folk", "kine": "cow", "shoes": "shoe",
    "toes": "toe", "ties": "tie", "pies": "pie", "lies": "lie", "movies": "movie", "cookies": "cookie",
    "aunties": "auntie", "laddies": "laddie", "lassies": "lassie", "prairies": "prairie", "buses": "bus",
    "houses": "house", "horses": "horse", "nurses": "nurse", "spouses": "spouse", "causes": "cause", "cases": "case",
}  # fmt: skip

# Singular words that end in s; ss, us and is are known by their ending.
_NOT_PLURAL = word_set(
    """gas lens news always perhaps christmas atlas canvas alas pancreas bias series species means physics mathematics
    politics economics ethics headquarters measles billiards gallows molasses mistress access congress yes his hers
    theirs ours yours its this thus james charles thomas lewis louis texas kansas paris athens brussels moses jones
    holmes dickens wales mass class glass pass"""
)

NOUN_GENDER: dict[str, Gender] = {**dict.fromkeys(_MALE.split(), "male"), **dict.fromkeys(_FEMALE.split(), "female")}
ANIMALS = word_set(_ANIMALS)
PEOPLE = word_set(_EITHER) | frozenset(NOUN_GENDER) - (ANIMALS - {"creature", "kid", "page"})
GROUPS = word_set(_GROUPS) | word_set(_PLURAL_GROUPS)
PLURAL_GROUPS = word_set(_PLURAL_GROUPS)
PLACES = word_set(_PLACES)
VEHICLES = word_set(_VEHICLES)
THINGS = word_set(_THINGS)
_KNOWN = PEOPLE | ANIMALS | GROUPS | PLACES | VEHICLES | THINGS


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """The singular of a noun in lower case, or the noun itself if it does not look plural."""
    if word in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[word]
    if word in _KNOWN or word in _NOT_PLURAL or len(word) < 4 or not word.endswith("s"):
        return word if not word.endswith("men") or len(word) < 5 or word in _KNOWN else _man(word)
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def _man(word: str) -> str:
    """The singular of a compound of men: gentlemen, policewomen; specimen and the like stay."""
    return word if word in {"omen", "specimen", "acumen", "regimen", "abdomen", "stamen"} else word[:-2] + "an"

"""Common verb forms, and adjectives that end like nouns: what ends a noun group when there are words alone.

Words that are nouns as often as verbs (walk, look, love) are left out of the verbs on purpose.

>>> "said" in VERBS, "house" in VERBS, looks_like_verb("trembled"), looks_like_verb("garden")
(True, False, True, False)
"""

from __future__ import annotations

from netclust.models.coreference.mentions.lexicon.word_sets import word_set

__all__ = ["ADJECTIVES", "REPORTING", "VERBS", "WEATHER", "looks_like_verb"]

_IRREGULAR = """said says say saying went goes go going gone came comes come coming took takes take taking taken made
makes make making got gets get getting gotten gave gives give giving given saw sees see seeing seen knew knows know
knowing known thought thinks think thinking told tells tell telling found finds finding find felt feels feel feeling
became becomes become becoming left leaves leave leaving kept keeps keep keeping began begins begin beginning begun
brought brings bring bringing stood stands standing sat sits sit sitting ran runs running lay lies lying lain laid lays
laying met meets meeting paid pays paying put puts putting read reads reading rose rises rising risen wrote writes
write writing written spoke speaks speak speaking spoken heard hears hear hearing held holds holding lost loses lose
losing let lets letting led leads leading grew grows grow growing grown fell falls falling fallen flew flies flying
flown drew draws drawing drawn drove drives driving driven broke breaks breaking broken bought buys buy buying built
builds build building caught catches catching chose chooses choose choosing chosen slept sleeps sleeping spent spends
spend spending sent sends send sending set sets setting shook shakes shaking shaken shone shines shining shot shoots
shooting shut shuts shutting sang sings sing singing sung sank sinks sinking sunk struck strikes striking stricken
swore swears swear swearing sworn taught teaches teach teaching threw throws throwing thrown tore tears tearing torn
understood understands understand understanding woke wakes waking woken wore wears wear wearing worn won wins winning
wound winds winding ate eats eat eating eaten drank drinks drinking drunk forgot forgets forget forgetting forgotten
forgave forgives forgive forgiving forgiven hid hides hiding hidden hung hangs hanging hurt hurts dealt dug lent lit
meant means mean meaning rode rides riding ridden sought seeks seek seeking sold sells sell selling smelt spun sprang
springs springing sprung stole steals stealing stolen stuck swam swims swimming swum swept sweeps sweeping swung swings
swinging bore bears bearing borne beat beats beating beaten bent bends bending bound bit bites biting bitten bled blew
blows blowing blown burst burnt crept creeps creeping cost cut cuts cutting fought fights fighting fled flee flees
froze frozen knelt kneels kneeling leapt leaped leaps leaping leant quit rang rings ringing rung shed slid slides
sliding split spread spreads spreading strove withdrew withdraws withdrawing withdrawn overheard undertook undertaken
befell beheld bade bid bids bidding arose arises arising arisen awoke abode clung clings clinging flung flings flinging
fed feeds feeding foresaw ground hit hits hitting kneel lean seems seem seemed seeming appears appeared appear appearing
happened happens happen happening ask asked asks asking reply replied replies replying wants want wanted wanting wish
wished wishes wishing try tried tries trying let's believe believed believes believing remember remembered remembers
remembering suppose supposed supposes supposing expect expected expects expecting continue continued continues
continuing allow allowed allows allowing add added adds adding follow followed follows following consider considered
considers considering remain remained remains remaining exist existed exists existing occur occurred occurs live lived
living die died dies dying marry married marries marrying enter entered enters entering belong belonged belongs
belonging contain contained contains containing listen listened listens listening"""
_REPORTING = """said says say replied asked cried exclaimed answered whispered muttered murmured shouted returned
remarked observed repeated continued added inquired enquired demanded declared thought told called screamed growled
laughed sighed ejaculated retorted rejoined responded interrupted began suggested explained announced quoth"""
_ADJECTIVES = """good bad great little big small large old young new long short tall high low deep wide broad narrow
thin fat thick heavy light dark bright pale white black red green blue yellow brown grey gray golden purple pink scarlet
hot cold warm cool wet dry hard soft rough smooth sharp dull clean dirty rich poor happy sad glad sorry angry proud
humble brave bold shy quiet silent loud wild gentle kind cruel sweet bitter fair beautiful handsome pretty ugly lovely
charming pleasant agreeable disagreeable dear beloved strange curious odd queer common rare certain sure possible
impossible true false real right wrong best worst better worse own same other such first last next second third former
latter only whole entire full empty open closed single double several many few early late recent modern ancient former
present past future common public private national social political general particular special ordinary
extraordinary usual unusual natural human divine holy sacred royal noble honest honourable respectable simple plain
fine clear weak strong sick ill well dead alive asleep awake tired weary busy idle lazy quick slow fast sudden
violent terrible horrible dreadful awful wonderful splendid magnificent excellent perfect complete absolute immense
enormous vast huge tiny wee slight mere very worthy unworthy innocent guilty mad crazy foolish wise clever stupid
intelligent ignorant serious grave solemn merry gay cheerful gloomy melancholy lonely solitary distant near far remote
foreign native domestic english french american german italian spanish russian irish scotch scottish welsh dutch
chinese indian european roman greek jewish christian catholic protestant eastern western northern southern middle
middle-aged upper lower inner outer left right top bottom fresh stale raw ripe rotten sour dim faint vague secret
hidden unknown famous celebrated notorious eminent important necessary useful useless free able unable ready willing
fond afraid aware conscious capable likely worth alone drunk sober elderly aged eldest elder younger youngest older
oldest chief principal main major minor utter sole unhappy unfortunate fortunate lucky wretched miserable faithful loyal
false good-natured well-known old-fashioned absent-minded honourable"""

WEATHER = word_set(
    """rain rains rained raining snow snows snowed snowing hail hailed hailing thunder thundered thundering drizzled
    drizzling freezing froze thawing thawed late early dark light cold hot warm cloudy sunny foggy windy morning evening
    night noon midnight dusk dawn time autumn winter spring summer sunday monday tuesday wednesday thursday friday
    saturday christmas o'clock o’clock"""
)
REPORTING = word_set(_REPORTING)
ADJECTIVES = word_set(_ADJECTIVES)
VERBS = (word_set(_IRREGULAR) | REPORTING) - {"building", "feeling", "meeting", "saying", "drawing", "left"}

_NOUNS_IN_ED = word_set(
    """bed shed sled seed weed feed deed need reed breed speed creed steed greed bleed hundred kindred sacred naked
    wicked rugged ragged wretched crooked hatred beloved blessed aged learned unit red led fed ted fred ned"""
)


def looks_like_verb(word: str) -> bool:
    """Whether a word in lower case is a verb in our list or ends like one (walked, standing is left to the list)."""
    return word in VERBS or (len(word) > 4 and word.endswith("ed") and word not in _NOUNS_IN_ED)

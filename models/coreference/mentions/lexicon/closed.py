"""Closed classes of English: the words by which noun groups are told from what is around them.

>>> "the" in ARTICLES, "of" in PREPOSITIONS, "could" in AUXILIARIES, "very" in ADVERBS
(True, True, True, True)
"""

from __future__ import annotations

from netclust.models.coreference.mentions.lexicon.word_sets import word_set

__all__ = [
    "ADVERBS", "ARTICLES", "AUXILIARIES", "CLAUSE_STARTS", "CONJUNCTIONS", "DAYS_AND_MONTHS", "DEMONSTRATIVES",
    "INTERJECTIONS", "NUMBERS", "NUMBERS_PLURAL", "PREPOSITIONS", "QUANTIFIERS",
    "QUANTIFIERS_PLURAL", "is_number", "is_punctuation",
]  # fmt: skip


ARTICLES = word_set("a an the th'")
DEMONSTRATIVES = word_set("this that these those yon yonder")
NUMBERS = word_set(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen score twain
    twoscore threescore fourscore hundreds thousands millions dozens scores zero half"""
)
NUMBERS_PLURAL = NUMBERS - {"half", "zero"}
QUANTIFIERS = word_set(
    """some any no every each all both many several few fewer most more less much enough various numerous countless
    another other either neither such what certain divers sundry one half"""
)
QUANTIFIERS_PLURAL = word_set(
    "all both many several few fewer most various numerous countless divers sundry these those"
)

PREPOSITIONS = word_set(
    """of in on at by for from to with without within into onto unto upon over under above below beneath beside besides
    between betwixt behind before after among amongst amid amidst around about across against along alongside beyond
    despite down during except inside near nearer nearest off opposite out outside past per round since through
    throughout till until toward towards underneath up via like unlike than as aboard athwart notwithstanding
    concerning regarding save but o' o’ atop versus"""
)
CONJUNCTIONS = word_set(
    """and or but nor yet so for because although though if unless while whilst whereas when whenever where wherever
    whether lest once since until till that than as & plus ere"""
)
CLAUSE_STARTS = word_set(
    """who whom whose which that what when where why how whoever whichever whatever because although though if unless
    while whilst whereas whenever wherever whether lest until till ere as than"""
)
AUXILIARIES = word_set(
    """am is are was were be been being 'm 're ’m ’re has have had having 've ’ve do does did doing done will would
    shall should can could may might must ought dare need used 'll ’ll 'd ’d ca wo sha ai art wast wert hast hath hadst
    dost doth didst wilt wouldst shalt shouldst canst couldst mayst cannot not n't n’t 'twas 'tis ’twas ’tis to na
    gon"""
)
ADVERBS = word_set(
    """very too quite rather so as also again always never ever often seldom sometimes soon now then there here just
    only even still yet already almost nearly hardly scarcely barely really indeed perhaps maybe possibly probably
    certainly surely well away back down up out off over forth forward together apart aside abroad ashore aboard ago
    before after afterwards afterward later early late once twice thrice not else instead however therefore thus hence
    hither thither whither hereby thereby therefore wherefore moreover nevertheless nonetheless otherwise meanwhile
    today tomorrow yesterday tonight to-day to-morrow to-night to-morrow yesterday anyway anyhow anywhere everywhere
    somewhere nowhere elsewhere likewise besides further farther far near close fast hard long much more most less
    least little enough why how when where alone altogether exactly merely simply straight right upstairs downstairs
    indoors outdoors inside outside homeward upward upwards downward downwards backward backwards onward
    presently directly immediately suddenly slowly quickly quietly softly loudly sharply gently thereupon whereupon
    somehow somewhat especially particularly namely actually finally lastly firstly secondly thoroughly
    entirely wholly partly mostly o'clock o’clock please yes no nay aye ay"""
)
INTERJECTIONS = word_set(
    """oh ah alas hello hullo halloa hallo hey ho hi ha well why yes no nay aye yea pshaw pooh tut hush hurrah bravo
    amen o lo behold good-by good-bye goodbye farewell bah ugh eh hum hem indeed pray ahoy whoa phew hm h'm thanks"""
)
DAYS_AND_MONTHS = word_set(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays january february march april may june july august september october november december spring summer autumn
    winter christmas easter michaelmas whitsuntide lent midsummer jan. feb. mar. apr. jun. jul. aug. sept. oct. nov.
    dec. sabbath noon midnight morning evening afternoon night"""
)

_ENDINGS_OF_NUMBERS = ("st", "nd", "rd", "th", "s")


def is_punctuation(word: str) -> bool:
    """Whether there is neither a letter nor a digit in it.

    >>> is_punctuation("--"), is_punctuation("o'clock")
    (True, False)
    """
    return not any(sign.isalnum() for sign in word)


def is_number(word: str) -> bool:
    """Whether it is written in digits, or is a number in words.

    >>> is_number("1,000"), is_number("twenty-five"), is_number("3rd"), is_number("B2")
    (True, True, True, False)
    """
    low = word.lower()
    if low[:1].isdigit():
        for ending in _ENDINGS_OF_NUMBERS:
            low = low.removesuffix(ending)
        return all(sign.isdigit() or sign in ".,:-/%" for sign in low)
    first, _, rest = low.partition("-")
    return first in NUMBERS and (not rest or rest in NUMBERS or rest in {"one", "odd"})

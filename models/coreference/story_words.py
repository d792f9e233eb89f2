"""What the made-up stories of `simulated` are made of: names, nouns, and sentences with open places.

Words of a sentence carry their part of speech after a slash. `<A>` is who the sentence is about, `<B>` another person,
`<C>` a third, `<T>` a thing, `<D>` the animal, `<P>` the place, `<I>` the inn, `<F>` the firm, `<G>` the group, `<S>` a
family, `<K>` a relative of A, `<O>` what A owns, `<H>` what B owns and `<&>` A and B together; `:object` after it is
its case. `<1 ...>` is mentioned only here, `<=>` is what A is said to be. A word with `=A` is a mention of A.
"""

from __future__ import annotations

__all__ = [
    *("ADJECTIVES", "ANIMALS", "FIRMS", "FIRM_ENDINGS", "FIRST_NAMES", "FRAMES", "GROUPS", "INNS", "OWNED", "PLACES"),
    *("PRONOUNS", "RELATIVES", "SENTENCES", "SPEECHES", "SURNAMES", "THINGS", "TITLES", "TRADES"),
]

FIRST_NAMES = {
    "male": ("John", "Henry", "Arthur", "Thomas", "George", "Edward", "Walter", "Samuel", "Hugh", "Oliver", "Peter"),
    "female": ("Mary", "Alice", "Emma", "Clara", "Ruth", "Helen", "Jane", "Martha", "Lucy", "Agnes", "Harriet"),
}
SURNAMES = ("Hale", "Marsh", "Winter", "Brook", "Fenn", "Archer", "Dale", "Stone", "Lark", "Pryce", "Thorne", "Wells")
TITLES = {"male": ("Mr.", "Dr.", "Captain", "Colonel", "Sir"), "female": ("Mrs.", "Miss", "Lady", "Madame", "Ms.")}
TRADES = ("baker", "doctor", "teacher", "painter", "lawyer", "gardener", "clerk", "merchant", "tailor", "farmer")
THINGS = ("lamp", "letter", "watch", "hat", "coat", "boat", "book", "ring", "map", "basket", "box", "violin")
OWNED = ("house", "garden", "shop", "carriage", "room", "kitchen")
ADJECTIVES = ("old", "small", "red", "broken", "heavy", "silver", "green", "strange", "new", "black")
ANIMALS = ("dog", "cat", "horse", "parrot", "goat", "pony")
PLACES = ("Ashby", "Millbrook", "Dover", "Weymouth", "Kingsford", "Eastcliff", "Norham", "Selby")
INNS = ("Red Lion", "White Hart", "Golden Anchor", "Black Bull", "Crown", "Old Mill")
FIRMS = ("Marlow", "Siddons", "Northgate", "Apollo", "Carter Brothers", "Union Mills", "Hobbs", "Swift")
FIRM_ENDINGS = ("Ltd.", "Inc.", "Bank", "Company")
RELATIVES = {"male": ("brother", "father", "son", "uncle"), "female": ("sister", "mother", "daughter", "aunt")}
GROUPS = ("children", "neighbours", "sailors", "soldiers", "guests", "servants")
PRONOUNS = {
    "male": {"subject": "he", "object": "him", "owner": "his"},
    "female": {"subject": "she", "object": "her", "owner": "her"},
    "thing": {"subject": "it", "object": "it", "owner": "its"},
    "many": {"subject": "they", "object": "them", "owner": "their"},
}

SENTENCES = (
    "<A> walked/VBD to/TO <P:object> with/IN <D:object> ./.",
    "<A> found/VBD <T:object> near/IN <1 a/DT river/NN> ./.",
    "<A> gave/VBD <T:object> to/TO <B:object> ./.",
    "<A> had/VBD lost/VBN <T:object> ,/, and/CC <B> helped/VBD <A:object> ./.",
    "<A> opened/VBD <O:object> and/CC called/VBD <B:object> ./.",
    "<B> waited/VBD in/IN <O:object> until/IN <A> came/VBD back/RB ./.",
    "<T> lay/VBD on/IN <1 the/DT table/NN> ,/, and/CC <A> looked/VBD at/IN <T:object> ./.",
    "<D> ran/VBD after/IN <A:object> ,/, but/CC <A> did/VBD not/RB see/VB <D:object> ./.",
    "<A> met/VBD <B:object> in/IN <P:object> ,/, where/WRB <A> lived/VBD ./.",
    "When/WRB <A> arrived/VBD ,/, <B> took/VBD <T:object> from/IN <H:object> ./.",
    "<A> had/VBD never/RB liked/VBN <P:object> ./.",
    "<A> kept/VBD <T:object> in/IN <O:object> ./.",
    "<G> laughed/VBD at/IN <A:object> ./.",
    "<A> asked/VBD <G:object> about/IN <T:object> ,/, but/CC <G> knew/VBD nothing/NN ./.",
    "<A> was/VBD tired/JJ ,/, and/CC <D> slept/VBD beside/IN <A:object> ./.",
    "In/IN <1 the/DT morning/NN> <A> sold/VBD <T:object> to/TO <B:object> ./.",
    "<A> wrote/VBD <1 a/DT long/JJ note/NN> to/TO <B:object> ,/, and/CC <B> answered/VBD at/IN once/RB ./.",
    "<A> was/VBD <=> ./.",
    "<A> was/VBD <=> in/IN <P:object> ./.",
    "<P> was/VBD quiet/JJ ,/, and/CC <A> loved/VBD <P:object> ./.",
    "<D> belonged/VBD to/TO <B:object> ./.",
    "<A> left/VBD ./.",
    "<A> left/VBD <P:object> early/RB ./.",
    "<A> ran/VBD away/RB ,/, and/CC <B> went/VBD home/RB ./.",
    "<A> put/VBD <T:object> down/RB and/CC shut/VBD <1 the/DT door/NN> ./.",
    "<B> set/VBD <T:object> beside/IN <A:object> ./.",
    "<&> met/VBD at/IN <I:object> ./.",
    "<&> left/VBD ,/, and/CC <D> followed/VBD <&:object> ./.",
    "<&> ran/VBD to/TO <O:object> ./.",
    "<G> saw/VBD <&:object> in/IN <P:object> ./.",
    "<S> left/VBD ./.",
    "<S> came/VBD to/TO <P:object> ,/, where/WRB <S> had/VBD <1 a/DT cousin/NN> ./.",
    "<A> visited/VBD <S:object> ,/, but/CC <S> were/VBD asleep/JJ ./.",
    "<I> was/VBD full/JJ ,/, and/CC <A> left/VBD ./.",
    "<F> cut/VBD <1 the/DT wages/NNS> ,/, and/CC <A> left/VBD <F:object> ./.",
    "<F> said/VBD that/IN <F> had/VBD sold/VBN <1 a/DT mill/NN> ./.",
    "<K> worked/VBD for/IN <F:object> ./.",
    "<K> cut/VBD <1 some/DT bread/NN> for/IN <A:object> ./.",
    "<A> wrote/VBD to/TO <K:object> ,/, and/CC <K> came/VBD to/TO <P:object> ./.",
    "<K> ran/VBD after/IN <D:object> ./.",
)
SPEECHES = (
    "I/PRP=A have/VBP lost/VBN <T:object>",
    "I/PRP=A will/MD wait/VB for/IN you/PRP=B in/IN <P:object>",
    "you/PRP=B must/MD not/RB tell/VB <C:object>",
    "<1 my/PRP$=A brother/NN> is/VBZ in/IN <P:object>",
    "<K> left/VBD <P:object>",
    "<K> knows/VBZ <1 your/PRP$=B cousin/NN>",
    "you/PRP=B must/MD help/VB <K:object>",
    "<1 my/PRP$=A friends/NNS> left/VBD yesterday/RB",
    "you/PRP=B may/MD keep/VB <T:object>",
    "<C> took/VBD <T:object> from/IN me/PRP=A",
    "I/PRP=A do/VBP not/RB believe/VB you/PRP=B",
    "I/PRP=A saw/VBD <D:object> near/IN <P:object>",
)
FRAMES = (
    "\"/`` {speech} ,/, \"/'' said/VBD <A> ./.",
    "\"/`` {speech} ,/, \"/'' <A> told/VBD <B:object> ./.",
    "<A> said/VBD to/TO <B:object> ,/, \"/`` {speech} ./. \"/''",
)

"""Texts for the tests of coreference: by hand, and odd ones by chance."""

from __future__ import annotations

from hypothesis import strategies as st

from netclust.models.coreference.formats.documents import Document


def text(sentences: str, **columns: tuple[str, ...]) -> Document:
    """A document of sentences with " | " between them."""
    words: list[str] = []
    starts = [0]
    for sentence in sentences.split(" | "):
        words += sentence.split()
        starts.append(len(words))
    return Document("d", tuple(words), tuple(starts), **columns)  # type: ignore[arg-type]


_WORDS = st.one_of(
    st.text(min_size=0, max_size=6),
    st.sampled_from(["the", "'s", "'", "of", ",", '"', "“", "Mr.", "Ann", "his", "it", "and", "who", "I", "-", "1st"]),
)
_TAGS = st.sampled_from(["", "_", "-", "NN", "NNP", "PRP$", "PROPN", "DET", "VB", "POS", "?", "(", "nn"])
_BITS = st.sampled_from(["*", "(NP*", "*)", "(S(NP*", "*))", "(NP*)", "", "((", ")", "(NP(NML*"])
_NAMED = st.sampled_from(["*", "(GPE)", "(PERSON*", "*)", "O", "B-PER", "I-PER", "", "()", "-"])


@st.composite
def odd_documents(draw: st.DrawFn) -> Document:
    words = tuple(draw(st.lists(_WORDS, min_size=0, max_size=25)))
    n = len(words)
    cuts = draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()

    def column(values: st.SearchStrategy[str]) -> tuple[str, ...] | None:
        return draw(st.one_of(st.none(), st.tuples(*[values] * n)))

    sentences = (0, *sorted(cuts), n) if n else (0,)
    return Document("odd", words, sentences, pos=column(_TAGS), parse=column(_BITS), named=column(_NAMED),
                    lemmas=column(_WORDS), speakers=column(_WORDS))  # fmt: skip

"""A page that shows the entities of a document in colours: to look at, or to send to somebody.

The page stands alone: no script, nothing from elsewhere, light or dark as the reader's system is. Mentions are boxes in
boxes with the number of their entity; an entity with a single mention is only underlined. Whatever the words are, they
are shown and never run.

>>> from netclust.models.coreference.formats.documents import Document, Mention
>>> letter = Document("letter", ("Ann", "saw", "<b>"), (0, 3), mentions=(Mention(0, 1, 4), Mention(2, 3, 4)))
>>> page = to_html(letter)
>>> '<span class="m" style="--h:190">Ann<sub>4</sub></span> saw' in page, "&lt;b&gt;" in page, "<b>" in page
(True, True, False)
"""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import pairwise

from netclust.models.coreference.formats.documents import Document, Mention, Span

__all__ = ["to_html"]

_LEGEND = 20  # entities
_NAME_WORDS = 6
_NO_SPACE_BEFORE = frozenset((",", ".", ";", ":", "!", "?", ")", "]", "'s", "’s", "n't", "n’t", "'", "…", "..."))
_NO_SPACE_AFTER = frozenset(("(", "[", "“", "‘", "«", "``"))
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --soft: #666; --box: 88%; --edge: 55%; --bad: #b00020 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --ink: #e8e8e8; --soft: #a0a0a0; --box: 22%; --edge: 55%; --bad: #ff8a80 } }
body { background: var(--paper); color: var(--ink); font: 1rem/2.1 Georgia, serif; margin: 0 auto; max-width: 46rem;
  padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.2rem; line-height: 1.3 } p { margin: .4rem 0 }
.about, .legend { color: var(--soft); font: .85rem/1.6 system-ui, sans-serif } .legend { padding: 0; list-style: none }
.legend li { display: inline-block; margin: 0 .6rem .3rem 0 } .legend span { color: var(--ink) }
.m { background: hsl(var(--h) 75% var(--box)); border: 1px solid hsl(var(--h) 45% var(--edge)); border-radius: .3rem;
  padding: .05rem .2rem; -webkit-box-decoration-break: clone; box-decoration-break: clone }
.s { border-bottom: 1px dotted var(--soft) }
sub { color: var(--soft); font: .65em system-ui, sans-serif; margin-left: .1em }
.off { outline: 2px dashed var(--bad); outline-offset: 1px }
"""


def to_html(document: Document, *, key: Document | None = None, title: str = "") -> str:
    """A page for one document. With a `key`, mentions that are not in it or are in another entity there are framed."""
    heading = escape(title or f"{document.name}, part {document.part}")
    sizes = Counter(mention.entity for mention in document.mentions if mention.entity >= 0)
    wrong = _wrong(document, key) if key is not None else frozenset()
    alone = sum(size == 1 for size in sizes.values())
    about = (
        f"{len(document.words)} words, {len(document.mentions)} mentions, {len(sizes)} entities, {alone} of one mention"
    )
    if key is not None:
        missed = len({mention.span for mention in key.mentions} - {mention.span for mention in document.mentions})
        about += f"; against the key {len(wrong)} mentions are wrong (framed) and {missed} are missing"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{heading}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n"
        f'<p class="about">{about}</p>\n{_legend(document, sizes)}<main>\n{_text(document, sizes, wrong)}</main>\n'
        "</body>\n</html>\n"
    )


def _hue(entity: int) -> int:
    """Colours of neighbouring numbers are far apart: each turns the wheel by the golden angle."""
    return entity * 137508 % 360000 // 1000


def _legend(document: Document, sizes: Counter[int]) -> str:
    largest = [entity for entity, size in sizes.most_common(_LEGEND) if size > 1]
    if not largest:
        return ""
    items = (
        f'<li><span class="m" style="--h:{_hue(entity)}">{escape(_name(document, entity))}<sub>{entity}</sub></span>'
        f" {sizes[entity]}</li>\n"
        for entity in largest
    )
    return f'<ul class="legend">\n{"".join(items)}</ul>\n'


def _name(document: Document, entity: int) -> str:
    """The mention that says most: a name of several words, a name inside a sentence, a phrase, a name, anything."""
    begins = set(document.sentences)
    mentions = [mention for mention in document.mentions if mention.entity == entity]
    phrases = [mention for mention in mentions if 1 < mention.end - mention.start <= _NAME_WORDS]
    names = [m for m in mentions if document.words[m.end - 1][0].isupper() and len(document.words[m.end - 1]) > 1]
    full_names = [mention for mention in names if mention in phrases]
    safe_names = [
        mention for mention in names if mention.start not in begins and document.words[mention.start - 1] != '"'
    ]
    best = full_names or safe_names or phrases or names or mentions
    return Counter(document.text(mention) for mention in best).most_common(1)[0][0]


def _wrong(document: Document, key: Document) -> frozenset[Span]:
    """Mentions that the key does not have, or has in another entity than most of their entity."""
    truth = {mention.span: mention.entity for mention in key.mentions}
    votes: dict[int, Counter[int]] = {}
    for mention in document.mentions:
        if mention.span in truth:
            votes.setdefault(mention.entity, Counter())[truth[mention.span]] += 1
    stands_for = {entity: counted.most_common(1)[0][0] for entity, counted in votes.items()}
    return frozenset(
        mention.span
        for mention in document.mentions
        if mention.span not in truth or truth[mention.span] != stands_for[mention.entity]
    )


def _text(document: Document, sizes: Counter[int], wrong: frozenset[Span]) -> str:
    """Sentences with their mentions. What crosses another mention or a sentence is closed there and opened again."""
    starting: dict[int, list[Mention]] = {}
    for mention in document.mentions:
        starting.setdefault(mention.start, []).append(mention)
    out: list[str] = []
    inside: list[Mention] = []
    for start, end in pairwise(document.sentences):
        out.append("<p>" + "".join(_opening(mention, sizes, wrong) for mention in inside))
        quoted = False
        for at in range(start, end):
            word = document.words[at]
            glued = word in _NO_SPACE_BEFORE or (word == '"' and quoted) or document.words[at - 1] in _NO_SPACE_AFTER
            out.append("" if at == start or glued or (quoted and document.words[at - 1] == '"') else " ")
            quoted ^= word == '"'
            for mention in starting.get(at, ()):
                out.append(_opening(mention, sizes, wrong))
                inside.append(mention)
            out.append(escape(word))
            inside = _close(out, inside, at + 1, sizes, wrong)
        out.append("</span>" * len(inside) + "</p>\n")
    return "".join(out)


def _close(
    out: list[str], inside: list[Mention], end: int, sizes: Counter[int], wrong: frozenset[Span]
) -> list[Mention]:
    """End the mentions that end here; those opened later than one of them are opened again."""
    first = next((depth for depth, mention in enumerate(inside) if mention.end == end), len(inside))
    stay: list[Mention] = []
    for mention in reversed(inside[first:]):
        if mention.end == end:
            out.append(f"<sub>{mention.entity}</sub></span>" if mention.entity >= 0 else "</span>")
        else:
            out.append("</span>")
            stay.insert(0, mention)
    out.extend(_opening(mention, sizes, wrong) for mention in stay)
    return inside[:first] + stay


def _opening(mention: Mention, sizes: Counter[int], wrong: frozenset[Span]) -> str:
    off = " off" if mention.span in wrong else ""
    if sizes[mention.entity] > 1:
        return f'<span class="m{off}" style="--h:{_hue(mention.entity)}">'
    return f'<span class="s{off}">'

"""The kernel of mention pairs again, in plain Python: the same slots, from whole numbers cut to 64 bits."""

from __future__ import annotations

from typing import Any

from netclust.models.coreference import mention_pair_kernels as kernel

MASK = (1 << 64) - 1
RELATION_NUMBERS = {
    "constant": kernel.CONSTANT, "same text": kernel.STRING, "same head": kernel.HEAD, "words in common": kernel.WORDS,
    "modifiers": kernel.MODIFIERS, "alias": kernel.ALIAS, "gender": kernel.GENDER, "number": kernel.NUMBER,
    "animacy": kernel.ANIMACY, "person": kernel.PERSON, "sentences apart": kernel.SENTENCES,
    "mentions apart": kernel.MENTIONS, "nested": kernel.NESTED, "apposition": kernel.APPOSITION,
    "same speaker": kernel.SPEAKER, "direct speech": kernel.QUOTES, "fitting mentions between": kernel.COMPATIBLE,
    "nearest of its head": kernel.NEAREST,
}  # fmt: skip


def mix(a: int, b: int) -> int:
    x = (a + (b ^ 0x9E3779B97F4A7C15) * 0xD1342543DE82EF95) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def chain(first: int, *rest: int) -> int:
    for number in rest:
        first = mix(first, number)
    return first


def bucket(n: int) -> int:
    return n if n <= 4 else (n - 1).bit_length() + 2


def agreement(a: int, b: int) -> int:
    if not a or not b:
        return 3 if a or b else 0
    return 1 if a == b else 2


class Twin:
    """The mentions of a document in lists of Python's own numbers."""

    def __init__(self, mentions: Any, templates: Any, distance: int) -> None:
        self.m = {name: getattr(mentions, name).tolist() for name in mentions._fields}
        self.relation, self.unary, self.lexical = (templates[k].tolist() for k in range(3))
        self.shift = int(templates.shift)
        self.distance = distance

    def words(self, i: int) -> set[int]:
        m = self.m
        return set(m["words"][m["words_at"][i] : m["words_at"][i + 1]])

    def agree(self, what: str, i: int, j: int) -> int:
        return agreement(self.m[what][i], self.m[what][j])

    def covers(self, i: int, j: int) -> bool:
        return self.m["start"][i] <= self.m["start"][j] and self.m["end"][j] <= self.m["end"][i]

    def fits(self, i: int, j: int) -> bool:
        m = self.m
        if any(self.agree(what, i, j) == 2 for what in ("gender", "number", "animacy")):
            return False
        pronouns = m["kind"][i] == m["kind"][j] == kernel.KIND_PRONOUN
        if pronouns and m["person"][i] != m["person"][j]:
            return m["quoted"][i] != m["quoted"][j]
        return not self.covers(i, j)

    def relations(self, i: int, j: int) -> dict[str, int]:
        """What every relation says of a pair."""
        m = self.m
        first = max(0, j - self.distance)
        named = kernel.KIND_PRONOUN not in (m["kind"][i], m["kind"][j])
        left, right, shared = self.words(i), self.words(j), len(self.words(i) & self.words(j))
        same_head = m["head"][i] == m["head"][j]
        nearer = [k for k in range(i + 1, j) if self.fits(k, j)]
        of_head = [k for k in range(first, j) if m["kind"][k] != kernel.KIND_PRONOUN and m["head"][k] == m["head"][j]]
        kinds = {(True, True): 1, (False, True): 2, (True, False): 3, (False, False): 4}
        names = m["kind"][i] == m["kind"][j] == kernel.KIND_NAME
        spoken = m["speaker"][i] and m["speaker"][j]
        return {
            "constant": 1,
            "same text": (1 if named else 2) * (m["text"][i] == m["text"][j]),
            "same head": int(named and same_head),
            "words in common": kinds[shared == len(left), shared == len(right)] if named and shared else 0,
            "modifiers": (1 if shared == len(right) else 2) * (named and same_head),
            "alias": 1 + min(shared, 3) if names and shared else 0,
            "gender": self.agree("gender", i, j),
            "number": self.agree("number", i, j),
            "animacy": self.agree("animacy", i, j),
            "person": 1 + 4 * m["person"][i] + m["person"][j],
            "sentences apart": 1 + bucket(m["sentence"][j] - m["sentence"][i]),
            "mentions apart": bucket(j - i),
            "nested": 1 if self.covers(i, j) else 2 * (m["start"][j] < m["end"][i]),
            "apposition": int(m["comma"][i] and m["start"][j] == m["end"][i] + 1),
            "same speaker": (1 if m["speaker"][i] == m["speaker"][j] else 2) if spoken else 0,
            "direct speech": 1 + 2 * m["quoted"][i] + m["quoted"][j],
            "fitting mentions between": 1 + bucket(len(nearer)) if self.fits(i, j) else 1,
            "nearest of its head": (1 if i == of_head[-1] else 2) if i in of_head else 0,
        }

    def row(self, i: int, j: int) -> list[int]:
        """The slots of a pair."""
        m, found = self.m, []
        forms = mix(m["form"][i], m["form"][j])
        values = {RELATION_NUMBERS[name]: int(value) for name, value in self.relations(i, j).items()}
        for t in range(kernel.RELATION_COUNT):
            if values[t] and self.relation[t]:
                feature = mix(t + 1, values[t])
                found += [chain(feature, 1), chain(feature, 2, m["form"][j]), chain(feature, 3, forms)]
        for a in self.unary:
            for offset, k in ((100, i), (200, j)):
                if m["attribute"][k][a]:
                    feature = mix(offset + a, m["attribute"][k][a])
                    found += [chain(feature, 1), chain(feature, 3, forms)]
        for t, a, b in self.lexical:
            if m["attribute"][i][a] and m["attribute"][j][b]:
                found.append(chain(300 + t, m["attribute"][i][a], m["attribute"][j][b]))
        return [feature >> self.shift for feature in found]

    def rows(self) -> list[list[int]]:
        """Later mention by later mention, the oldest candidate first."""
        n = len(self.m["start"])
        return [self.row(i, j) for j in range(n) for i in range(max(0, j - self.distance), j)]

"""Explanations: why a verdict was given, attribute by attribute, in numbers that add up and in words.

A verdict lies between two referents: the one that the record was linked to, and the best one of the opposite side
(normal against anomalous, the root being anomalous). Every attribute's contribution is what it adds to the score with
the first less what it adds with the second, both counted from a referent equal to the record; the root's is how far it
lies below such a referent. The contributions sum to the margin: positive ones speak for the verdict.

>>> from netclust.datasets.simulators.simulate import KNOWN, simulate
>>> from netclust.linking.linker import Linker, LinkerConfig
>>> from netclust.models.network.train_network import train_network
>>> from netclust.models.network.params import load_params
>>> model = train_network(simulate(3000, seed=1).table(), load_params("late"), seed=0)
>>> linker = Linker(model, LinkerConfig.stream(referent_window=0))
>>> batch = model.encoding.encode(simulate(400, seed=2, day=1).table())
>>> verdicts, evidence = linker.process_with_evidence(batch)
>>> found = explain(linker, batch, verdicts, evidence, int(evidence.rows[0]))
>>> found.verdict, found.margin == math.fsum(part.contribution for part in found.parts)
('known_attack', True)
>>> print(found.text())  # doctest: +ELLIPSIS
Record 0:... is a known attack (...), by a margin of ...
  like reference ... (...) because ...
  unlike the nearest normal, reference ... (normal), because ...
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.linking.evidence import Evidence, EvidenceSide
from netclust.linking.linker import Linker
from netclust.linking.verdicts import NO_REFERENT, NORMAL, VERDICTS, VIAS, Verdicts, reference_index
from netclust.records.batch import Batch
from netclust.scoring.model import Model

__all__ = ["ROOT_PART", "Explanation", "Part", "Referent", "Value", "contributions", "explain"]

ROOT_PART = "(root)"
"""The name of the root's contribution: it is not an attribute."""
FEW = 3
WORTH = 0.01
"""The text leaves out what adds less than this share of the largest contribution."""
Value = float | str | None
"""Of an attribute, as it was before encoding (numbers to the precision of the encoding); None: no such value."""


class Referent(msgspec.Struct, frozen=True, kw_only=True):
    """One end of the comparison. `id` is "root", "reference 17" or a record id; its score is the kernel's."""

    kind: Literal["root", "reference", "window"]
    id: str
    label: str
    score: float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one attribute adds to the margin, with its value in the record and in the two referents."""

    attribute: str
    contribution: float
    value: Value
    linked: Value
    opposite: Value


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a verdict was given. `parts`: the strongest first, by size; without an opposite there is no margin."""

    record: str
    verdict: str
    label: str
    via: str
    cluster: int
    score: float | None
    margin: float | None
    linked: Referent
    opposite: Referent | None
    parts: list[Part]

    def top(self, count: int = FEW) -> list[str]:
        """The attributes that speak most for the verdict."""
        return [part.attribute for part in self._speaking(1) if part.attribute != ROOT_PART][:count]

    def _speaking(self, sign: int) -> list[Part]:
        return [part for part in self.parts if sign * part.contribution > 0]

    def text(self, count: int = FEW) -> str:
        """In words: what it is like, what it is unlike, and the attributes that say so."""
        least = WORTH * max((abs(part.contribution) for part in self.parts), default=0.0)
        for_it, against = (
            [p for p in self._speaking(sign) if p.attribute != ROOT_PART and abs(p.contribution) >= least][:count]
            for sign in (1, -1)
        )
        lines = [self._headline()]
        if self.linked.kind != "root":
            shared = ", ".join(f"{part.attribute} {_pair(part.value, part.linked)}" for part in for_it)
            lines.append(f"  like {_name(self.linked)}" + (f" because {shared}" if shared else ""))
        elif self.opposite is not None:
            root = -math.fsum(part.contribution for part in self.parts if part.attribute == ROOT_PART)
            away = root + (self.margin or 0.0)
            lines.append(
                f"  like nothing: the nearest normal record is {away:.3g} away, and the root stands at {root:.3g}"
            )
        if self.opposite is not None and self.opposite.kind == "root":
            lines.append(f"  unlike anything new: it is {self._away()}")
        elif self.opposite is not None:
            apart = [f"{p.attribute} {_pair(p.value, p.opposite)} ({p.contribution:+.3g})" for p in for_it]
            side = "anomalous record" if self.verdict == VERDICTS[NORMAL] else "normal"
            because = f", because {', '.join(apart)}" if apart else ""
            lines.append(f"  unlike the nearest {side}, {_name(self.opposite)}{because}")
        if against:
            lines.append("  although " + ", ".join(self._although(part) for part in against))
        return "\n".join(lines)

    def _away(self) -> str:
        """How far the referent is, where the root is the other end."""
        root = abs(math.fsum(part.contribution for part in self.parts if part.attribute == ROOT_PART))
        away = abs(math.fsum(part.contribution for part in self.parts if part.attribute != ROOT_PART))
        return f"{away:.3g} away, and the root stands at {root:.3g}"

    def _headline(self) -> str:
        what = self.verdict.replace("_", " ")
        if self.verdict == "known_attack":
            what = f"a {what} ({self.label})"
        if self.margin is None:
            return f"Record {self.record} is {what}: there is nothing of the other side to compare with"
        return f"Record {self.record} is {what}, by a margin of {self.margin:.3g}"

    def _although(self, part: Part) -> str:
        """What speaks against, with the values of both referents."""
        ends = [
            f"{_show(value)} in {referent.id}"
            for value, referent in ((part.linked, self.linked), (part.opposite, self.opposite))
            if referent is not None and referent.kind != "root"
        ]
        return f"{part.attribute} {_show(part.value)} ({', '.join(ends)}; {part.contribution:+.3g})"


def _pair(value: Value, other: Value) -> str:
    """The record's value and a referent's.

    >>> _pair("S0", "S0"), _pair(1.0, 0.25), _pair("http", None)
    ('S0 on both', '1 against 0.25', 'http against unknown')
    """
    return f"{_show(value)} on both" if value == other else f"{_show(value)} against {_show(other)}"


def _name(referent: Referent) -> str:
    kind = f"record {referent.id}" if referent.kind == "window" else referent.id
    return f"{kind} ({referent.label})"


def _show(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.4g}"
    return "unknown" if value is None else value


def explain(linker: Linker, batch: Batch, verdicts: Verdicts, evidence: Evidence, row: int) -> Explanation:
    """Explain the verdict on record `row` of a batch that went through `linker.process_with_evidence`."""
    model, k = linker.model, evidence.at(row)
    record = (batch.num[row], batch.code[row])
    root = float(model.root_scores(batch[row : row + 1])[0])
    normal = _Arm.of_side(linker, evidence.normal, k, verdicts.normal_at[row], verdicts.normal_label[row])
    normal = normal and normal.scored(float(verdicts.normal[row]))
    other = _Arm.of_side(linker, evidence.other, k, verdicts.other_at[row], verdicts.other_label[row])
    other = other and other.scored(float(verdicts.other[row]))
    anomalous: _Arm | None = other
    if other is None or root >= other.referent.score:
        anomalous = None if root == -math.inf else _Arm.of_root(root)
    linked, opposite = (normal, anomalous) if verdicts.verdict[row] == NORMAL else (anomalous, normal)
    if linked is None:  # nothing at all to link to: the root, however low
        linked = _Arm.of_root(root)
    parts = _parts(model, record, linked, opposite)
    score = float(verdicts.score[row])
    return Explanation(
        record=batch.record_id(row),
        verdict=VERDICTS[verdicts.verdict[row]],
        label=linker.labels.name(int(verdicts.label[row])),
        via=VIAS[verdicts.via[row]],
        cluster=int(verdicts.cluster[row]),
        score=score if math.isfinite(score) else None,
        margin=None if opposite is None else math.fsum(part.contribution for part in parts),
        linked=linked.referent,
        opposite=None if opposite is None else opposite.referent,
        parts=parts,
    )


class _Arm(msgspec.Struct, frozen=True):
    """A referent with its encoded values; the root has none."""

    referent: Referent
    num: NDArray[np.float32] | None = None
    code: NDArray[np.uint16] | None = None

    @classmethod
    def of_root(cls, score: float) -> _Arm:
        return cls(Referent(kind="root", id="root", label="", score=score))

    @classmethod
    def of_side(cls, linker: Linker, side: EvidenceSide, k: int, handle: np.int64, label: np.int32) -> _Arm | None:
        if handle == NO_REFERENT:
            return None
        pinned = handle < 0
        name = f"reference {reference_index(int(handle))}" if pinned else f"{side.source[k]}:{side.seq[k]}"
        kind: Literal["reference", "window"] = "reference" if pinned else "window"
        referent = Referent(kind=kind, id=name, label=linker.labels.name(int(label)), score=math.nan)
        return cls(referent, side.num[k], side.code[k])

    def scored(self, score: float) -> _Arm:
        return msgspec.structs.replace(self, referent=msgspec.structs.replace(self.referent, score=score))


Record = tuple[NDArray[np.float32], NDArray[np.uint16]]


def _parts(model: Model, record: Record, linked: _Arm, opposite: _Arm | None) -> list[Part]:
    """Every attribute that is scored, and the root if it is one of the two; the largest first."""
    encoding = model.encoding
    names = [a.name for a in encoding.numeric] + [a.name for a in encoding.schema.coded]
    scored = [True] * len(encoding.kept) + [bool(v) for v in encoding.vocabularies]
    total = np.zeros(len(names))
    root = 0.0
    for arm, sign in ((linked, 1.0), (opposite, -1.0)):
        if arm is None:
            continue
        if arm.num is None or arm.code is None:
            root += sign * (arm.referent.score - own_score(model, record))
        else:
            total += sign * contributions(model, record, (arm.num, arm.code))
    values, theirs, against = (
        [None] * len(names) if each is None else encoding.decode(*each)
        for each in (record, _values(linked), None if opposite is None else _values(opposite))
    )
    parts = [
        Part(attribute=name, contribution=float(c), value=value, linked=a, opposite=b)
        for name, c, value, a, b, kept in zip(names, total, values, theirs, against, scored, strict=True)
        if kept
    ]
    if any(arm is not None and arm.num is None for arm in (linked, opposite)):
        parts.append(Part(attribute=ROOT_PART, contribution=root, value=None, linked=None, opposite=None))
    return sorted(parts, key=lambda part: -abs(part.contribution))


def _values(arm: _Arm) -> Record | None:
    return None if arm.num is None or arm.code is None else (arm.num, arm.code)


def contributions(model: Model, record: Record, referent: Record) -> NDArray[np.float64]:
    """What each attribute adds to the score of a pair, less what it adds where the referent equals the record.

    Numeric attributes first, then coded ones; in float64, from the numbers that the kernel uses.
    """
    scorer = model.scorer
    (x, codes), (y, others) = record, referent
    gap = np.minimum(np.abs(x.astype(np.float64) - y.astype(np.float64)), scorer.far.astype(np.float64))
    numeric = scorer.slope.astype(np.float64) * gap
    own, theirs = scorer.offset + codes, scorer.offset + others
    other, match = scorer.other.astype(np.float64), scorer.match.astype(np.float64)
    same = (codes == others) & (codes > 0)
    coded = other[theirs] - other[own] + np.where(same, match[own], 0.0) - np.where(codes > 0, match[own], 0.0)
    return np.concatenate([numeric, coded])


def own_score(model: Model, record: Record) -> float:
    """The score of a record with a referent equal to it: the highest of a distance."""
    scorer = model.scorer
    at = scorer.offset + record[1]
    parts = [float(scorer.base), *scorer.own[at].tolist(), *scorer.other[at].tolist()]
    return math.fsum([*parts, *np.where(record[1] > 0, scorer.match[at], 0).tolist()])

"""Adaptation: a trained model made to fit a site, by some of the site's own traffic.

The traffic is taken for normal, except what the model clearly takes for an attack that it knows. Its first half gives
referents, its second half sets the root (split conformal, as in `calibration`) and shows which of the model's attacks
this site's ordinary traffic resembles; then it gives referents as well, which can only make normal records more normal.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> site = model.encoding.encode(simulate(2500, seed=2, day=1, attacks=()).table())
>>> adapted = adapt(model, site, rate=0.001, references=400)
>>> len(model.reference), len(adapted.reference), adapted.calibration.records <= 1250
(280, 680, True)
>>> adaptation_of(adapted).adapted_from == model.fingerprint, adaptation_of(model)
(True, None)
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import Verdicts, reference_index
from netclust.records.batch import Batch
from netclust.scoring.calibration import Calibration, calibrate
from netclust.scoring.model import Model
from netclust.scoring.reference import covering_reference
from netclust.scoring.similarity import bits_from_one

__all__ = ["Adaptation", "adapt", "adaptation_of", "clearly_attacks", "without_lookalikes"]

RATE = 0.001
CLEAR = 0.5
"""A record is clearly a known attack if that is nearer than this share of the distance to the nearest normal one."""
MIN_RECORDS = 20
MAX_REFERENCES = 1 << 20
ROUNDS = 20
MIN_SEEDS, MAX_SEEDS = 10, 500
_KEY = "adaptation"


class Adaptation(msgspec.Struct, frozen=True, kw_only=True):
    """How an adapted model came about: kept in its provenance."""

    adapted_from: str
    """The fingerprint of the model before."""
    records: int
    """Of the site."""
    attacks: int
    """Of these, taken for known attacks: neither referents nor calibrated on."""
    references: int
    """How many became referents, behind those of the model."""
    replaced: int
    """Attack referents that ordinary traffic of this site is nearest to, and that gave their place to it."""
    rate: float
    """The false-alarm rate that was asked for; the calibration has the one that could be promised."""


def adapt(model: Model, site: Batch, *, rate: float = RATE, references: int = 2000, seed: int = 0) -> Model:
    """The model for a site, given some of its traffic in order of time, encoded by the model's encoding.

    At most `references` records become normal referents. Where fewer than 1 / rate - 1 are left to calibrate on, the
    smallest rate that they can promise is used instead. The root is never raised above the model's own: an hour that
    is more alike than the days that the model was calibrated on says little about the hours to come.
    """
    _check(model, site, rate, references)
    plain = replace(site, label=np.full(len(site), -1, np.int32))
    rng = np.random.default_rng(seed)
    clear = _attacks_in(model, plain, rng)
    usable = plain[~clear]
    if len(usable) < MIN_RECORDS:
        raise InputError(
            f"{int(clear.sum())} of {len(site)} records look like known attacks: too few are left to adapt to"
        )
    half = len(usable) // 2
    first, second = usable[:half], usable[half:]
    adapted, replaced = without_lookalikes(model, first, rate)
    chosen = _choose(adapted, first, references - references // 2, rng)
    adapted = _with_normal(adapted, first[chosen])
    adapted, again = without_lookalikes(adapted, second, rate)
    calibration = _calibrate(model, adapted, second, rate)
    more = _choose(adapted, second, references - len(chosen), rng)
    adapted = _with_normal(adapted, second[more])
    said = Adaptation(
        adapted_from=model.fingerprint,
        records=len(site),
        attacks=int(clear.sum()),
        references=len(chosen) + len(more),
        replaced=replaced + again,
        rate=rate,
    )
    params = {**model.provenance.params, _KEY: msgspec.to_builtins(said)}
    provenance = msgspec.structs.replace(model.provenance, params=params)
    return replace(adapted, calibration=calibration, provenance=provenance)


def adaptation_of(model: Model) -> Adaptation | None:
    """How the model was adapted to its site, None if it was not."""
    said = model.provenance.params.get(_KEY)
    try:
        return None if said is None else msgspec.convert(said, Adaptation)
    except msgspec.ValidationError:
        return None  # provenance is a note: a model does not become unusable by it


def clearly_attacks(model: Model, batch: Batch) -> NDArray[np.bool_]:
    """Which records lie at a known attack: less than half as far from it as from anything normal.

    Distances are what a score lacks to that of a referent equal to the record. Records that resemble an attack because
    the model knows nothing better lie between the two.
    """
    verdicts = _score_only(model, batch)
    same = _self_scores(model, batch)
    with np.errstate(invalid="ignore"):
        return np.asarray(verdicts.anomalous & (same - verdicts.other < CLEAR * (same - verdicts.normal)))


def _attacks_in(model: Model, batch: Batch, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Clear attacks, and what is as clearly like one of them: how an attack begins is less typical than its middle.

    One step only, and not from a few records, which may be none: more steps walk into ordinary traffic.
    """
    clear = clearly_attacks(model, batch)
    found = np.flatnonzero(clear)
    if len(found) < MIN_SEEDS:
        return clear
    if len(found) > MAX_SEEDS:
        found = found[_apart(model, batch[found], MAX_SEEDS, rng)]
    attack = int(np.flatnonzero(~model.encoding.label_table().is_normal)[0])
    return clear | clearly_attacks(_with_referents(model, batch[found], attack), batch)


def _check(model: Model, site: Batch, rate: float, references: int) -> None:
    if not 0 < rate < 1:
        raise InputError(f"a false-alarm rate lies between 0 and 1, not {rate}")
    if not 2 <= references <= MAX_REFERENCES:
        raise InputError(f"references must lie between 2 and {MAX_REFERENCES}, not {references}")
    if len(site) < MIN_RECORDS:
        raise InputError(f"{len(site)} records are too few to adapt to: at least {MIN_RECORDS}")
    if not model.encoding.label_table().is_normal[model.reference.label].any():
        raise InputError("the model has no normal referent: there is nothing to adapt")


def _score_only(model: Model, batch: Batch) -> Verdicts:
    """Link every record to the pinned referents alone, as if there were no root; labels are not read."""
    linker = Linker(replace(model, calibration=None, rooted=False), LinkerConfig(referent_window=0))
    return linker.process(replace(batch, label=np.full(len(batch), -1, np.int32)))


def _self_scores(model: Model, batch: Batch) -> NDArray[np.float32]:
    """What each record would score with a referent equal to it."""
    scorer = model.scorer
    scores = np.full(len(batch), scorer.base, np.float32)
    for s in range(batch.code.shape[1]):
        at = scorer.offset[s] + batch.code[:, s].astype(np.int64)
        scores += scorer.own[at] + scorer.other[at] + np.where(batch.code[:, s] > 0, scorer.match[at], np.float32(0))
    return scores


def _choose(model: Model, batch: Batch, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows that become referents: first those that a known attack is nearest to, then such as lie apart."""
    if len(batch) <= most:
        return np.arange(len(batch))
    verdicts = _score_only(model, batch)
    near = np.flatnonzero(verdicts.anomalous)
    if len(near) > most // 2:
        near = near[_apart(model, batch[near], most // 2, rng)]
    rest = np.setdiff1d(np.arange(len(batch)), near)
    chosen = rest[_apart(model, batch[rest], most - len(near), rng)]
    return np.sort(np.concatenate([near, chosen]))


def _apart(model: Model, batch: Batch, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """k rows that lie apart from each other, in units of what the model has learned to be the price of a symbol."""
    scorer = model.scorer
    price = float(np.abs(scorer.match).mean()) if len(scorer.match) else 1.0
    units = np.abs(scorer.slope) / (price or 1.0)
    binary = [a.kind == "binary" for a in model.encoding.schema.coded]
    scaled = replace(bits_from_one(batch, binary), num=batch.num * units.astype(np.float32))
    return covering_reference(scaled, k, rng)


def _with_normal(model: Model, more: Batch) -> Model:
    """The same model with more normal referents, behind its own."""
    return _with_referents(model, more, _normal_number(model))


def _with_referents(model: Model, more: Batch, label_number: int) -> Model:
    own = model.reference
    label = np.concatenate([own.label, np.full(len(more), label_number, np.int32)])
    reference = Batch(
        num=np.concatenate([own.num, more.num]),
        code=np.concatenate([own.code, more.code]),
        label=label,
        seq=np.concatenate([own.seq, more.seq]),
    )
    return replace(model, reference=reference)


def _normal_number(model: Model) -> int:
    return int(np.flatnonzero(model.encoding.label_table().is_normal)[0])


def without_lookalikes(model: Model, batch: Batch, rate: float) -> tuple[Model, int]:
    """The model, and how many of its attack referents gave their place to what they drew of a normal batch.

    They do so while they draw more than `rate` of it together: the one that draws most goes first, and the record
    that is nearest to it takes its place as a normal referent. No other place changes.
    """
    allowed = int(rate * len(batch))
    replaced = 0
    for _ in range(ROUNDS):
        verdicts = _score_only(model, batch)
        drawn = np.flatnonzero(verdicts.anomalous)
        if len(drawn) <= allowed:
            break
        at = reference_index(verdicts.other_at[drawn])
        counts = np.bincount(at)
        worst = np.argsort(-counts, kind="stable")
        enough = int(np.searchsorted(np.cumsum(counts[worst]), len(drawn) - allowed)) + 1
        reference = replace(
            model.reference,
            num=model.reference.num.copy(),
            code=model.reference.code.copy(),
            label=model.reference.label.copy(),
            seq=model.reference.seq.copy(),
            context={},
        )
        for place in worst[:enough].tolist():
            victims = drawn[at == place]
            nearest = int(victims[np.argmax(verdicts.other[victims])])
            reference.num[place], reference.code[place] = batch.num[nearest], batch.code[nearest]
            reference.label[place], reference.seq[place] = _normal_number(model), batch.seq[nearest]
            replaced += 1
        model = replace(model, reference=reference)
    return model, replaced


def _calibrate(before: Model, adapted: Model, batch: Batch, rate: float) -> Calibration:
    """The root for the batch, which the referents have not seen."""
    verdicts = _score_only(adapted, batch)
    promised = max(rate, math.ceil(1e6 / (len(batch) + 1)) / 1e6)
    calibration = calibrate(np.maximum(verdicts.normal, verdicts.other), promised, verdicts.anomalous)
    if before.calibration is None or before.calibration.root >= calibration.root:
        return calibration
    root = before.calibration.root
    below = np.maximum(verdicts.normal, verdicts.other) <= np.float32(root)
    return msgspec.structs.replace(
        calibration, root=root, obtained=float(below.mean()), alarms=float((below | verdicts.anomalous).mean())
    )

"""The maker of the models that come with netclust: their recipes, and the command that follows them.

`python -m netclust.models.network.make_shipped netclust/shipped` makes them again (`make models`). The same versions of
numpy and numba give the same fingerprints. `netclust.shipped.loading` loads them; nothing imports this module at run
time.

>>> RECIPES["kdd"].file, len(RECIPES["flow"].training)
('nsl-kdd/KDDTrain+.txt.xz', 3)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_simulator import LABEL_HEADER, simulate_capture
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.adaptation import without_lookalikes
from netclust.models.network.params import load_params
from netclust.models.network.train_network import NetworkFit, best_scores, fit_network
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding
from netclust.records.reader import RecordReader
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.scoring.calibration import calibrate
from netclust.scoring.model import Model
from netclust.scoring.reference import draw_reference
from netclust.scoring.similarity import bits_from_one, spread_units
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.capture_reader import CaptureReader

__all__ = ["RECIPES", "Office", "Recipe", "make_shipped", "simulated_days"]

RATE = 0.001
REFERENCES = 1500
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Office:
    """A simulated day of an office of its own."""

    start: str
    seed: int
    hosts: int
    clients: str
    hours: float = 24.0
    attacks: str = "all"
    campaigns_per_hour: float = 4.0


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a shipped model is made of: days of offices, or the records of a file with simulated referents."""

    schema: str
    preset: str
    training: tuple[Office, ...] = ()
    calibration: tuple[Office, ...] = ()
    file: str = ""
    simulated: int = 0  # records, of each simulated day, where the training data gives no referent
    references: int = REFERENCES


_TRAINING = (
    Office(start="2024-01-01T00:00:00Z", seed=5101, hosts=40, clients="10.20.0.0/24"),
    Office(start="2024-01-02T06:00:00Z", seed=5102, hosts=12, clients="10.21.0.0/24"),
    Office(start="2024-01-06T06:00:00Z", seed=5103, hosts=60, clients="10.22.0.0/24"),
)
_CALIBRATION = (
    Office(start="2024-01-08T00:00:00Z", seed=5201, hosts=25, clients="10.23.0.0/24", attacks="none"),
    Office(start="2024-01-13T00:00:00Z", seed=5202, hosts=50, clients="10.24.0.0/24", attacks="none"),
)

RECIPES = {
    "conn": Recipe(schema="conn", preset="capture", training=_TRAINING, calibration=_CALIBRATION),
    "flow": Recipe(schema="flow", preset="capture", training=_TRAINING, calibration=_CALIBRATION),
    "kdd": Recipe(schema="kdd", preset="reference", file="nsl-kdd/KDDTrain+.txt.xz", simulated=40_000),
}


def make_shipped(name: str, data: Path | None = None, recipe: Recipe | None = None) -> Model:
    """Make a model by its recipe; `data` is the folder of the public data sets, which `kdd` is trained on."""
    recipe = recipe or RECIPES[name]
    params = msgspec.structs.replace(
        load_params(recipe.preset, load_schema(recipe.schema)),
        reference_size=recipe.references,
        reference_choice="covering",
        false_alarm_rate=None,  # the root is set on days of their own, below
    )
    if not recipe.file:
        table = simulated_days(recipe.training, recipe.schema)
        fit = fit_network(table, params, seed=SEED, data=f"simulated: {_days(recipe.training)}")
        usual = fit.encoding.encode(simulated_days(recipe.calibration, recipe.schema))
        return _calibrated(fit.draw(SEED), usual, f"simulated: {_days(recipe.calibration)}")
    if data is None:
        raise InputError(f"{name} is trained on {recipe.file}: name the folder of the data sets (--data)")
    reader = RecordReader(data / recipe.file, load_schema(recipe.schema))
    table = concat_tables(list(reader))
    fit = fit_network(table, params, seed=SEED, data=Path(recipe.file).name, sha256=reader.sha256)
    return _with_simulated_referents(fit, recipe)


def simulated_days(offices: Sequence[Office], schema: str) -> Table:
    """The labelled connections of some offices' days, one after the other."""
    with tempfile.TemporaryDirectory(prefix="netclust-") as folder:
        captures, rows = [], [LABEL_HEADER]
        for k, office in enumerate(offices):
            captures.append(Path(folder, f"{k}.pcap"))
            labels = Path(folder, f"{k}.csv")
            simulate_capture(
                captures[-1], labels, hours=office.hours, seed=office.seed, attacks=office.attacks, hosts=office.hosts,
                clients=office.clients, start=office.start, campaigns_per_hour=office.campaigns_per_hour,
            )  # fmt: skip
            rows += labels.read_text().splitlines()[1:]
        every = Path(folder, "labels.csv")
        every.write_text("\n".join(rows) + "\n")
        reader = CaptureReader(captures, load_schema(schema), labels=load_labels(every), context=False, checksum=False)
        return concat_tables(list(reader))


def _with_simulated_referents(fit: NetworkFit, recipe: Recipe) -> Model:
    """The learned weights with referents that are simulated: no record of the training data is in the model."""
    attacks = (*KNOWN, *HELD_BACK)
    first, second, usual = (
        simulate(recipe.simulated, seed=seed, day=day, attacks=chosen)
        for seed, day, chosen in ((5301, 0, attacks), (5302, 5, attacks), (5401, 8, ()))
    )
    names = sorted({*first.label.tolist(), *second.label.tolist()} - {"normal"})
    encoding = replace(fit.encoding, labels=("normal", *names))
    seen = {row.tobytes() for row in _scored(fit.seen)}
    pool = [_unlike(encoding.encode(day.table()), seen) for day in (first, second)]
    halves = [_drawn(batch, encoding, recipe.references // 2, SEED + k) for k, batch in enumerate(pool)]
    reference = Batch(
        num=np.concatenate([half.num for half in halves]),
        code=np.concatenate([half.code for half in halves]),
        label=np.concatenate([half.label for half in halves]),
    )
    model = replace(fit.draw(SEED), encoding=encoding, reference=reference)
    return _calibrated(model, encoding.encode(usual.table()), f"{recipe.simulated} simulated records")


def _scored(batch: Batch) -> NDArray[np.float32]:
    """All that is scored of each record, in a row."""
    return np.concatenate([batch.num, batch.code.astype(np.float32)], axis=1)


def _unlike(batch: Batch, seen: set[bytes]) -> Batch:
    """The records that are not in the training data, not even by chance (48 bytes of time of day are)."""
    return batch[np.array([row.tobytes() not in seen for row in _scored(batch)])]


def _drawn(batch: Batch, encoding: Encoding, size: int, seed: int) -> Batch:
    """Records of every class, apart from each other; an attribute that is constant here keeps nobody apart."""
    units = spread_units(batch.num)
    known = bits_from_one(batch, [a.kind == "binary" for a in encoding.schema.coded])
    apart = replace(known, num=(batch.num / np.where(units > 0, units, 1.0)).astype(np.float32))
    return batch[draw_reference(batch.label, size, np.random.default_rng(seed), "covering", apart=apart)]


def _calibrated(model: Model, usual: Batch, what: str) -> Model:
    """Without attacks that ordinary records resemble; with the root for the usual rate, and a note of it all."""
    model, replaced = without_lookalikes(model, usual[::2], RATE)
    best, alarms = best_scores(model, usual[1::2])
    noted = {**model.provenance.params, "calibrated_on": what, "attack_referents_replaced": replaced}
    provenance = msgspec.structs.replace(model.provenance, params=noted)
    return replace(model, calibration=calibrate(best, RATE, alarms), provenance=provenance)


def _days(offices: Sequence[Office]) -> str:
    return ", ".join(
        f"{o.hours:g} h of {o.hosts} hosts from {o.start}, seed {o.seed}, attacks {o.attacks}" for o in offices
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Make models anew and write them to a folder."""
    parser = argparse.ArgumentParser(prog="python -m netclust.models.network.make_shipped", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where the files go: netclust/shipped")
    parser.add_argument("--data", type=Path, default=None, help="the folder of the data sets, for kdd")
    parser.add_argument("--only", choices=sorted(RECIPES), action="append", help="this one (default: all)")
    given = parser.parse_args(arguments)
    for name in given.only or sorted(RECIPES):
        model = make_shipped(name, given.data)
        target = given.folder / f"{name}.safetensors"
        model.save(target)
        size = f"{target.stat().st_size:,} bytes"
        sys.stdout.write(f"{target}: {size}, {len(model.reference)} referents, {model.fingerprint[:16]}\n")


if __name__ == "__main__":
    main()

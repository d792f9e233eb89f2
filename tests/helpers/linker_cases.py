"""Small models, streams and configurations for the linker's tests."""

from __future__ import annotations

import os
from dataclasses import fields

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from netclust.linking.linker import LinkerConfig
from netclust.linking.verdicts import Verdicts
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding
from netclust.records.schema import Attribute, Schema
from netclust.scoring.calibration import Calibration
from netclust.scoring.model import Model
from netclust.scoring.similarity import WeightLayout, root_count

LONG = bool(os.environ.get("NETCLUST_LONG"))
CLASSES = ("normal", "dos", "probe")
NAMES = (*CLASSES, "worm", "benign")  # the last two come with the stream; both normal and benign mean normal
SECOND = 1_000_000_000


def examples(few: int, many: int) -> settings:
    """Hypothesis settings: repeatable and few, or many and random in the long run."""
    return settings(
        max_examples=many if LONG else few,
        deadline=None,
        database=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
    )


def numbered(labels, names):
    """The numbers of label names, -1 for none; new ones are added."""
    return np.array([labels.add(name) if name else -1 for name in names], np.int32)


def build_model(
    num, code, label, w, *, widths=(), root="bias", calibrated=None, rooted=True, sign=-1, key=True, far=None
):
    """A model by hand: reference set, weights, and attributes that are already scaled and coded."""
    features = np.asarray(num).shape[1]
    attributes = [Attribute(name=f"n{f}") for f in range(features)]
    attributes += [Attribute(name=f"s{s}", kind="symbolic") for s in range(len(widths))]
    attributes += [Attribute(name="host", role="key")] if key else []
    encoding = Encoding(
        schema=Schema(name="small", attributes=tuple(attributes), normal=("normal", "benign")),
        kept=tuple(a.name for a in attributes[:features]),
        low=np.zeros(features),
        span=np.ones(features),
        vocabularies=tuple(tuple(f"v{v}" for v in range(1, width)) for width in widths),
        labels=CLASSES,
    )
    calibration = None
    if calibrated is not None:
        calibration = Calibration(root=calibrated, false_alarm_rate=0.1, obtained=0.1, records=100)
    reference = Batch(num=num, code=code, label=np.array(label, np.int32))
    w = np.array(w, np.float64)
    return Model(encoding, w, w, reference, sign=sign, root=root, far=far, rooted=rooted, calibration=calibration)


def line_model(references=((0.10, "normal"), (0.90, "dos")), root=0.85):
    """One numeric attribute, similarity 1 - |a - b|, a fixed root score."""
    num = np.array([[value] for value, _ in references], np.float32).reshape(-1, 1)
    code = np.zeros((len(references), 0), np.uint16)
    return build_model(num, code, [CLASSES.index(name) for _, name in references], [1.0, root])


def line(values, *, first=0, labels=None, times=None):
    """Records of the line model; `first` is the seq of the first one."""
    n = len(values)
    return Batch(
        num=np.array(values, np.float32).reshape(-1, 1),
        code=np.zeros((n, 0), np.uint16),
        seq=np.arange(first, first + n, dtype=np.uint64),
        label=labels,
        time=None if times is None else np.array([int(t * SECOND) for t in times], np.int64),
    )


def random_model(rng):
    """Coarse weights and values make ties, fine ones make rounding; any part may be absent."""
    features = int(rng.integers(0, 7))
    widths = tuple(int(k) for k in rng.choice([2, 2, 3, 5], rng.integers(0 if features else 1, 4)))
    root = str(rng.choice(["bias", "none", "attributes"]))
    layout = WeightLayout(features, widths, root_count(features, root))
    w = rng.integers(-2, 5, layout.dimension) / 4 if rng.random() < 0.6 else rng.normal(0.3, 1, layout.dimension)
    references = int(rng.choice([0, 1, 3, 8]))
    calibrated = None
    if rng.random() < 0.5:  # somewhere among the scores, so that root links and others both happen
        calibrated = float(w[:features].sum() + rng.integers(-8, 9) / 4 + 0.125)
    stream = random_stream(rng, references, features, widths)
    return build_model(
        stream.num,
        stream.code,
        rng.integers(0, len(CLASSES), references),
        w,
        widths=widths,
        root=root,
        calibrated=calibrated,
        rooted=rng.random() < 0.8,
        sign=int(rng.choice([-1, -1, 1])),
        far=rng.choice([0.1, 0.5, 3.0], features) if rng.random() < 0.3 else None,
    )


def random_stream(rng, n, features, widths):
    """Records with repeats, unknown codes, labels here and there, times missing or going back."""
    num = rng.integers(0, 5, (n, features)) / 4 if rng.random() < 0.6 else rng.normal(0.5, 0.5, (n, features))
    code = np.array([[rng.integers(0, width) for width in widths] for _ in range(n)], np.uint16)
    rows = np.where(rng.random(n) < 0.3, rng.integers(0, max(n, 1), n), np.arange(n))
    steps = rng.exponential(1.0, n) if rng.random() < 0.5 else rng.normal(0.5, 2, n)
    time = (1000 * SECOND + np.cumsum(steps) * SECOND).astype(np.int64)
    time[rng.random(n) < rng.choice([0, 0, 0.3, 1])] = -1
    label = rng.integers(0, len(NAMES), n).astype(np.int32)
    label[rng.random(n) < rng.choice([0, 0.5, 1])] = -1
    return Batch(
        num=num.astype(np.float32)[rows],
        code=code.reshape(n, len(widths))[rows],
        time=time,
        label=label,
        seq=np.arange(100, 100 + n, dtype=np.uint64),
        source=rng.integers(0, 2, n).astype(np.uint16),
        key=rng.integers(0, 1 << 63, n).astype(np.uint64),
    )


@st.composite
def configs(draw, partitions=(1, 1, 2, 3)):
    return LinkerConfig(
        referent_window=draw(st.sampled_from([0, 1, 2, 3, 7, 20, 40])),
        gap=draw(st.sampled_from([0, 0, 1, 3])),
        whole=draw(st.booleans()),
        label_delay=draw(st.sampled_from([None, None, 0, 1, 4, 60])),
        mature_after=draw(st.sampled_from([None, None, 0.0, 0.5, 4.0])),
        mature_share=draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        partitions=draw(st.sampled_from(partitions)),
        max_clusters=draw(st.sampled_from([1, 2, 4, 64])),
        representatives=draw(st.sampled_from([0, 1, 3, 8, 40])),
        keep=draw(st.sampled_from(["reservoir", "medoid", "difficulty"])),
    )


def random_script(rng, batch, count):
    """Feedback to come: (said at, scope, target, label, counts from), in the order in which it is said."""
    n, script, undone = len(batch), [], set()
    for number, said in enumerate(sorted(int(t) for t in rng.integers(0, n + 1, count))):
        from_tick = said + int(rng.choice([0, 0, 1, 5, 20]))
        label = NAMES[int(rng.integers(0, len(NAMES)))]
        scope = str(rng.choice(["record", "cluster", "cluster", "undo"]))
        left = [k for k, s in enumerate(script) if s[1] != "undo" and k not in undone]
        if scope == "undo" and left:
            target = (int(rng.choice(left)),)
            undone.add(target[0])
        elif scope == "record":
            i = min(max(said - int(rng.integers(-3, 12)), 0), n - 1)
            target = (int(batch.source[i]), int(batch.seq[i]))
        else:
            scope, target = "cluster", (int(rng.integers(0, len(CLASSES) + 1 + number + said // 4)),)
        script.append((said, scope, target, label, from_tick))
    return script


def say(linker, scope, target, label, from_tick):
    """One line of a script, to a linker."""
    if scope == "record":
        return linker.label_record(f"{target[0]}:{target[1]}", label, from_tick=from_tick)
    if scope == "cluster":
        return linker.label_cluster(target[0], label, from_tick=from_tick)
    return linker.undo(target[0], from_tick=from_tick)


def with_names(linker):
    """The linker, knowing the stream's label names."""
    for name in NAMES:
        linker.labels.add(name)
    return linker


def columns(verdicts):
    """Every output column, by name."""
    return {f.name: getattr(verdicts, f.name) for f in fields(Verdicts)}


def assert_same(a, b):
    """Two sets of verdicts, bit for bit."""
    for name, column in columns(a).items():
        assert column.tobytes() == columns(b)[name].tobytes(), name

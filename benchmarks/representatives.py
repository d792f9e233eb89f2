"""Accuracy a referent: a window of N against one of N/2 and N/2 representatives, on NSL-KDD, as it is and with a flood.

Gold labels count 100 records late. The flood is 5,000 neptune records of KDDTrain+ in the middle of KDDTest+; what is
measured is the test records alone, and the 2,000 of them after it.
"""

from __future__ import annotations

import msgspec
import numpy as np
from common import nsl_kdd, save

from netclust.linking.linker import Linker, LinkerConfig
from netclust.metrics.detection_metrics import decision_metrics
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import network_with_reference, train_network
from netclust.models.test_set_ledger import record_test_use
from netclust.records.batch import Batch, concat_batches
from netclust.records.reader import RecordReader, read_table
from netclust.records.schema import load_schema

REFERENTS = (100, 1000, 4000)
POLICIES = ("reservoir", "medoid", "difficulty")
DRAWS = 3
FLOOD, AFTER, DELAY = 5000, 2000, 100


def configs(n: int) -> dict[str, LinkerConfig]:
    """The plain window, and the ways to spend half of it."""
    plain = LinkerConfig.thesis(referent_window=n, delay=DELAY, whole=False)
    half = {
        keep: msgspec.structs.replace(plain, referent_window=n // 2, representatives=n // 2, keep=keep)
        for keep in POLICIES
    }
    return {"window": plain, **half}


def percent(values: list[float]) -> dict[str, float]:
    return {"mean": round(100 * float(np.mean(values)), 2), "sd": round(100 * float(np.std(values, ddof=1)), 2)}


def numbered(batch: Batch) -> Batch:
    """With record ids in the order of the stream."""
    batch.seq = np.arange(len(batch), dtype=np.uint64)
    return batch


def main() -> None:
    kdd = load_schema("kdd")
    train = read_table(nsl_kdd("KDDTrain+"), kdd)
    reader = RecordReader(nsl_kdd("KDDTest+"), kdd)
    tables = list(reader)
    model = train_network(train, TrainParams(epochs=1))
    known = model.encoding.encode(train)
    neptune = known[np.flatnonzero(train.label_names() == "neptune")[:FLOOD]]
    labels = Linker(model).labels
    test = concat_batches([model.encoding.encode(table, labels) for table in tables])
    middle = len(test) // 2
    flooded = numbered(concat_batches([test[:middle], neptune, test[middle:]]))
    of_test = np.ones(len(flooded), np.bool_)
    of_test[middle : middle + len(neptune)] = False
    streams = {"as it is": (numbered(test[:]), np.ones(len(test), np.bool_)), "with a flood": (flooded, of_test)}
    rows = []
    for stream, (batch, counted) in streams.items():
        after = np.zeros(len(batch), np.bool_)
        after[len(batch) - (len(test) - middle) :][:AFTER] = True
        truth = ~labels.is_normal[batch.label]
        for n in REFERENTS:
            for memory, config in configs(n).items():
                whole, soon = [], []
                for draw in range(DRAWS):
                    linker = Linker(network_with_reference(model, known, 280, seed=draw), config)
                    for name in labels.names:
                        linker.labels.add(name)
                    anomalous = linker.process(batch).anomalous
                    whole.append(decision_metrics(anomalous[counted], truth[counted]).accuracy)
                    soon.append(decision_metrics(anomalous[after], truth[after]).accuracy)
                rows.append(
                    {
                        "stream": stream,
                        "referents": n,
                        "memory": memory,
                        "accuracy": percent(whole),
                        "accuracy_after": percent(soon),
                    }
                )
                print(rows[-1], flush=True)
    record_test_use("representatives.py", reader.sha256, rows=len(rows), draws=DRAWS)
    save("representatives", {"draws": DRAWS, "delay": DELAY, "flood": FLOOD, "after": AFTER, "rows": rows})


if __name__ == "__main__":
    main()

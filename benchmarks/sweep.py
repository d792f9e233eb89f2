"""How long a pair takes, for windows from 100 to 20,000 referents, against a bare sum of |a-b| in the same run.

Also the rates from an NSL-KDD file to a table, and from the file to verdicts.
"""

from __future__ import annotations

import numpy as np
from common import best_of, nsl_kdd, save

from netclust.kernels.jit import kernel
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import network_with_reference, train_network
from netclust.models.test_set_ledger import record_test_use
from netclust.records.reader import RecordReader, read_table
from netclust.records.schema import load_schema

RECORDS = 4000


@kernel
def bare_sums(x, referents, acc):
    """The peer: sum of |a-b| over the same float32 block, vectorised across referents, nothing else."""
    total = np.float32(0)
    for j in range(len(x)):
        for k in range(len(acc)):
            acc[k] = np.float32(0)
        for f in range(len(referents)):
            value = x[j, f]
            for k in range(len(acc)):
                acc[k] += abs(value - referents[f, k])
        total += acc[0]
    return total


def main() -> None:
    kdd = load_schema("kdd")
    train = read_table(nsl_kdd("KDDTrain+"), kdd)
    model = train_network(train, TrainParams(epochs=1))
    stream = model.encoding.encode(train)
    records = stream[:RECORDS]
    rows = []
    for referents in (100, 280, 380, 1000, 5000, 20_000):
        linker = Linker(network_with_reference(model, stream, referents, seed=0), LinkerConfig(referent_window=0))
        n = RECORDS if referents <= 1000 else RECORDS // 10
        batch = records[:n]
        block, acc = linker.memory.references.num[:, :referents].copy(), np.zeros(referents, np.float32)
        linker.process(batch)
        bare_sums(batch.num, block, acc)
        ours = best_of(lambda linker=linker, batch=batch: linker.process(batch), 7)
        bare = best_of(lambda b=batch, block=block, acc=acc: bare_sums(b.num, block, acc), 7)
        pairs = n * referents
        rows.append(
            {
                "referents": referents,
                "ns_per_pair": round(1e9 * ours / pairs, 3),
                "bare_ns_per_pair": round(1e9 * bare / pairs, 3),
                "ratio": round(ours / bare, 2),
                "records_per_second": round(n / ours),
            }
        )
    reader = RecordReader(nsl_kdd("KDDTest+"), kdd)
    config = LinkerConfig.thesis(referent_window=100, delay=100)
    reading = best_of(lambda: read_table(nsl_kdd("KDDTrain+"), kdd))
    rates = [evaluate_network(model, reader, config).metrics()["records_per_second"] for _ in range(5)]
    record_test_use("sweep.py", reader.sha256, rows=len(rates), draws=1)
    save(
        "sweep",
        {
            "target": "at most 3 times the bare sum a pair; 50,000 records/s file to verdicts; 200,000 records/s read",
            "rows": rows,
            "file_to_table_records_per_second": round(len(train) / reading),
            "file_to_verdicts_records_per_second": round(max(rates)),
        },
    )


if __name__ == "__main__":
    main()

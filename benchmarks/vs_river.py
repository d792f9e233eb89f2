"""Linking at 380 referents against river's adaptive random forest and logistic regression, same run, one core.

river's models predict and learn one record at a time from dicts that are made beforehand; netclust links an encoded
batch, labels arriving 100 records late. Both see the same KDDTest+ records in the same order.
"""

from __future__ import annotations

from common import best_of, nsl_kdd, save, timed
from river import forest, linear_model, preprocessing

from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.models.test_set_ledger import record_test_use
from netclust.records.reader import RecordReader, read_table
from netclust.records.schema import load_schema
from netclust.records.table import concat_tables

TURNS = 5
RUNS = 3  # of netclust a turn; of each of river's models 1


def main() -> None:
    kdd = load_schema("kdd")
    model = train_network(read_table(nsl_kdd("KDDTrain+"), kdd), TrainParams(epochs=1))
    reader = RecordReader(nsl_kdd("KDDTest+"), kdd)
    test = concat_tables(list(reader))
    linker = Linker(model, LinkerConfig.thesis(referent_window=100, delay=100))
    batch = model.encoding.encode(test, linker.labels)
    names = [a.name for a in kdd.numeric]
    dicts = [dict(zip(names, row, strict=True)) for row in test.num.tolist()]
    truth = [bool(x) for x in ~linker.labels.is_normal[batch.label]]

    def river_rate(make, records: int) -> float:
        learner = make()

        def run() -> None:
            for x, y in zip(dicts[:records], truth[:records], strict=True):
                learner.predict_one(x)
                learner.learn_one(x, y)

        return records / timed(run)

    known = _known(batch, linker)
    # In turns, the best of each: the machine's bad moments then hit all three.
    ours = logistic = forest_rate = 0.0
    for _ in range(TURNS):
        ours = max(ours, len(batch) / best_of(lambda: Linker(model, linker.config).process(known), RUNS))
        logistic = max(
            logistic, river_rate(lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(), 10_000)
        )
        forest_rate = max(forest_rate, river_rate(lambda: forest.ARFClassifier(n_models=10, seed=0), 1000))
    record_test_use("vs_river.py", reader.sha256, rows=TURNS * (RUNS + 2), draws=1)
    save(
        "vs_river",
        {
            "target": "at least 100 times the adaptive random forest, at least 15 times logistic regression",
            "netclust_records_per_second": round(ours),
            "river_arf_10_trees_records_per_second": round(forest_rate),
            "river_logistic_regression_records_per_second": round(logistic),
            "times_arf": round(ours / forest_rate, 1),
            "times_logistic_regression": round(ours / logistic, 1),
        },
    )


def _known(batch, linker):
    """The batch without label numbers that a fresh linker would not know."""
    from dataclasses import replace

    import numpy as np

    known = len(linker.model.encoding.labels)
    return replace(batch, label=np.where(batch.label < known, batch.label, -1).astype(np.int32))


if __name__ == "__main__":
    main()

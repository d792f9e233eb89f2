"""From LitBank's training documents to a model: reading, features, 10 epochs of LSP^E, with arcs a second.

The peer in the same run is scikit-learn's FeatureHasher (murmur hashes in C) on strings of as many features of a sample
of the pairs; without the making of these strings, so that it is a lower bound for it.

    python benchmarks/coreference_speed.py [--split N]
"""

from __future__ import annotations

import argparse

from common import best_of, data_folder, save, timed
from sklearn.feature_extraction import FeatureHasher

from netclust.models.coreference.examples import prepare_examples
from netclust.models.coreference.learning import learn_coreference
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.experiments.coreference.litbank import read_split
from netclust.models.experiments.coreference.litbank_experiments import FEATURES

SAMPLE = 20_000
EPOCHS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", type=int, default=0)
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("skipped: LitBank not found, set NETCLUST_DATA to the folder of the data sets")
    litbank = folder / "coref" / "litbank"
    reading = timed(lambda: read_split(litbank, arguments.split))
    documents = read_split(litbank, arguments.split).train
    prepare_examples(documents[:1], FEATURES)  # compiles, or loads what is compiled
    one = best_of(lambda: prepare_examples(documents, FEATURES, jobs=1), 2)
    two = best_of(lambda: prepare_examples(documents, FEATURES, jobs=2), 2)
    examples = prepare_examples(documents, FEATURES, jobs=2)
    arcs = sum(len(example.pairs.at) - 1 for example in examples)
    slots = sum(len(example.pairs.slots) for example in examples)
    settings = CoreferenceSettings(features=FEATURES, epochs=EPOCHS)
    learn_coreference(settings, examples[:1])
    training = timed(lambda: learn_coreference(settings, examples))
    each = slots // arcs
    rows = [[f"{row}:{k}" for k in range(each)] for row in range(SAMPLE)]
    hasher = FeatureHasher(FEATURES.dimension, input_type="string")
    hashing = best_of(lambda: hasher.transform(rows), 3)
    save(
        "coreference-speed",
        {
            "documents": len(documents),
            "mentions": sum(example.pairs.items for example in examples),
            "arcs": arcs,
            "features": slots,
            "features_an_arc": each,
            "reading_s": reading,
            "extraction_s": {"1 thread": one, "2 threads": two},
            "extraction_arcs_per_s": {"1 thread": arcs / one, "2 threads": arcs / two},
            "feature_hasher_arcs_per_s": SAMPLE / hashing,
            "times_feature_hasher": (arcs / one) / (SAMPLE / hashing),
            "epochs": EPOCHS,
            "training_s": training,
            "training_arcs_per_s": EPOCHS * arcs / training,
        },
    )


if __name__ == "__main__":
    main()

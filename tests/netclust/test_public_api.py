"""The public names: pinned, lazy, and where they say they are."""

from __future__ import annotations

import importlib
import subprocess
import sys

import netclust

PUBLIC = [
    "Batch", "Detection", "Explanation", "InputError", "Linker", "LinkerConfig", "Model", "ModelError", "NetclustError",
    "RecordReader", "Schema", "Table", "TrainParams", "VERDICTS", "Verdicts", "__version__", "as_table", "detect",
    "evaluate_network", "explain", "infer_schema", "load_params", "load_schema", "parse_schema", "read_table",
    "simulate", "train", "train_network", "CaptureFile", "CaptureReader", "FlowTable", "FlowTimeouts",
    "connection_maker", "load_labels", "open_live", "open_records", "simulate_capture", "adapt", "load_shipped",
    "Alert", "AlertEvent", "load_config", "parse_config", "Daemon", "Detector", "MemorySink", "Sink", "Arrival",
    "MemorySource", "Source", "Store", "ClusterModel", "ComputedPairs", "ItemTable", "PairFeatures", "StackedPairs",
    "StoredPairs", "TextFeatures", "TextPairs", "measure_clustering", "read_items", "CoreferenceModel",
    "CoreferenceSettings", "Document", "Mention", "plain_document", "read_documents", "score_documents",
    "train_coreference", "write_conll", "Queries", "Query", "RankModel", "RankSettings", "measure_rankings",
    "read_queries", "train_ranking", "StructuredModel", "MissingExtraError",
]  # fmt: skip


def test_the_public_names_are_pinned() -> None:
    assert sorted(netclust.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(netclust))
    assert sorted(netclust._HOME) == sorted(set(PUBLIC) - {"__version__"})
    for name, home in netclust._HOME.items():
        assert getattr(netclust, name) is getattr(importlib.import_module(f"netclust.{home}"), name)


def test_adapters_offer_their_names() -> None:
    import netclust.clustering
    import netclust.river
    import netclust.sklearn

    assert netclust.river.__all__ == ["LinkDetector", "OnlineLinkClusterer"]
    assert netclust.sklearn.__all__ == ["LinkClassifier", "LinkNovelty"]
    estimators = ["CorrelationClusterer", "KMeansClusterer", "LinkClusterer", "PairwiseClusterer"]
    assert netclust.clustering.__all__ == estimators


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, netclust; print([m for m in ('numpy', 'numba', 'msgspec') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_unknown_names_are_not_found() -> None:
    assert not hasattr(netclust, "nothing")


def test_a_missing_library_is_named() -> None:
    for library, module, extra in (("river", "netclust.river", "river"), ("sklearn", "netclust.sklearn", "sklearn")):
        code = f"import sys; sys.modules[{library!r}] = None\ntry: import {module}\nexcept Exception as e: print(e)"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert f"pip install 'netclust[{extra}]'" in out

"""Streaming network anomaly detection by learned linking, and a library for supervised clustering.

The names below are the public API; each is loaded when it is first used, so that `import netclust` costs nothing.

>>> import netclust
>>> model = netclust.train({"bytes": [10.0, 12.0, 11.0, 13.0] * 40}, reference_size=50, false_alarm_rate=0.1)
>>> netclust.detect(model, {"bytes": [11.0, 4000.0]}).anomalous.tolist()
[False, True]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from netclust._version import __version__

if TYPE_CHECKING:
    from netclust.adaptation import adapt
    from netclust.arrays import Detection, detect, train
    from netclust.batch import Batch
    from netclust.clustering_metrics import measure_clustering
    from netclust.coreference_metrics import score_documents
    from netclust.datasets.capture_simulator import simulate_capture
    from netclust.datasets.item_sets import ItemTable, read_items
    from netclust.datasets.queries import Queries, Query, read_queries
    from netclust.datasets.records import RecordReader, read_table
    from netclust.datasets.simulate import simulate
    from netclust.errors import InputError, MissingExtraError, ModelError, NetclustError
    from netclust.explanation import Explanation, explain
    from netclust.frames import as_table, infer_schema
    from netclust.linker import Linker, LinkerConfig
    from netclust.model import Model
    from netclust.models.cluster_model import ClusterModel
    from netclust.models.coreference.documents import Document, Mention
    from netclust.models.coreference.model import CoreferenceModel
    from netclust.models.coreference.plain import plain_document
    from netclust.models.coreference.reading import read_documents
    from netclust.models.coreference.settings import CoreferenceSettings
    from netclust.models.coreference.training import train_coreference
    from netclust.models.coreference.writing import write_conll
    from netclust.models.evaluation import evaluate_network
    from netclust.models.network import train_network
    from netclust.models.params import TrainParams, load_params
    from netclust.models.rank_model import RankModel, train_ranking
    from netclust.models.ranking import RankSettings
    from netclust.models.text_pairs import TextFeatures, TextPairs
    from netclust.pairs import ComputedPairs, PairFeatures, StackedPairs, StoredPairs
    from netclust.ranking_metrics import measure_rankings
    from netclust.schema import Schema, load_schema, parse_schema
    from netclust.shipped.loading import load_shipped
    from netclust.stream.alert_events import Alert, AlertEvent
    from netclust.stream.capture_files import CaptureFile
    from netclust.stream.capture_labels import load_labels
    from netclust.stream.capture_reader import CaptureReader
    from netclust.stream.connections import connection_maker
    from netclust.stream.daemon.config import load_config, parse_config
    from netclust.stream.daemon.service import Daemon
    from netclust.stream.detector import Detector
    from netclust.stream.flow_table import FlowTable, FlowTimeouts
    from netclust.stream.live import open_live
    from netclust.stream.sinks.base import MemorySink, Sink
    from netclust.stream.sources.base import Arrival, MemorySource, Source
    from netclust.stream.sources.record_files import open_records
    from netclust.stream.store import Store
    from netclust.structured_models import StructuredModel
    from netclust.table import Table
    from netclust.verdicts import VERDICTS, Verdicts

_HOMES = {
    "adaptation": ("adapt",),
    "arrays": ("Detection", "detect", "train"),
    "batch": ("Batch",),
    "clustering_metrics": ("measure_clustering",),
    "coreference_metrics": ("score_documents",),
    "datasets.capture_simulator": ("simulate_capture",),
    "datasets.item_sets": ("ItemTable", "read_items"),
    "datasets.queries": ("Queries", "Query", "read_queries"),
    "datasets.records": ("RecordReader", "read_table"),
    "datasets.simulate": ("simulate",),
    "errors": ("InputError", "MissingExtraError", "ModelError", "NetclustError"),
    "explanation": ("Explanation", "explain"),
    "frames": ("as_table", "infer_schema"),
    "linker": ("Linker", "LinkerConfig"),
    "model": ("Model",),
    "models.cluster_model": ("ClusterModel",),
    "models.coreference.documents": ("Document", "Mention"),
    "models.coreference.model": ("CoreferenceModel",),
    "models.coreference.plain": ("plain_document",),
    "models.coreference.reading": ("read_documents",),
    "models.coreference.settings": ("CoreferenceSettings",),
    "models.coreference.training": ("train_coreference",),
    "models.coreference.writing": ("write_conll",),
    "models.evaluation": ("evaluate_network",),
    "models.network": ("train_network",),
    "models.params": ("TrainParams", "load_params"),
    "models.rank_model": ("RankModel", "train_ranking"),
    "models.ranking": ("RankSettings",),
    "models.text_pairs": ("TextFeatures", "TextPairs"),
    "pairs": ("ComputedPairs", "PairFeatures", "StackedPairs", "StoredPairs"),
    "ranking_metrics": ("measure_rankings",),
    "schema": ("Schema", "load_schema", "parse_schema"),
    "shipped.loading": ("load_shipped",),
    "stream.alert_events": ("Alert", "AlertEvent"),
    "stream.capture_files": ("CaptureFile",),
    "stream.capture_labels": ("load_labels",),
    "stream.capture_reader": ("CaptureReader",),
    "stream.connections": ("connection_maker",),
    "stream.daemon.config": ("load_config", "parse_config"),
    "stream.daemon.service": ("Daemon",),
    "stream.detector": ("Detector",),
    "stream.flow_table": ("FlowTable", "FlowTimeouts"),
    "stream.live": ("open_live",),
    "stream.sinks.base": ("MemorySink", "Sink"),
    "stream.sources.record_files": ("open_records",),
    "stream.sources.base": ("Arrival", "MemorySource", "Source"),
    "stream.store": ("Store",),
    "structured_models": ("StructuredModel",),
    "table": ("Table",),
    "verdicts": ("VERDICTS", "Verdicts"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "VERDICTS",
    "Alert",
    "AlertEvent",
    "Arrival",
    "Batch",
    "CaptureFile",
    "CaptureReader",
    "ClusterModel",
    "ComputedPairs",
    "CoreferenceModel",
    "CoreferenceSettings",
    "Daemon",
    "Detection",
    "Detector",
    "Document",
    "Explanation",
    "FlowTable",
    "FlowTimeouts",
    "InputError",
    "ItemTable",
    "Linker",
    "LinkerConfig",
    "MemorySink",
    "MemorySource",
    "Mention",
    "MissingExtraError",
    "Model",
    "ModelError",
    "NetclustError",
    "PairFeatures",
    "Queries",
    "Query",
    "RankModel",
    "RankSettings",
    "RecordReader",
    "Schema",
    "Sink",
    "Source",
    "StackedPairs",
    "Store",
    "StoredPairs",
    "StructuredModel",
    "Table",
    "TextFeatures",
    "TextPairs",
    "TrainParams",
    "Verdicts",
    "__version__",
    "adapt",
    "as_table",
    "connection_maker",
    "detect",
    "evaluate_network",
    "explain",
    "infer_schema",
    "load_config",
    "load_labels",
    "load_params",
    "load_schema",
    "load_shipped",
    "measure_clustering",
    "measure_rankings",
    "open_live",
    "open_records",
    "parse_config",
    "parse_schema",
    "plain_document",
    "read_documents",
    "read_items",
    "read_queries",
    "read_table",
    "score_documents",
    "simulate",
    "simulate_capture",
    "train",
    "train_coreference",
    "train_network",
    "train_ranking",
    "write_conll",
]


if not TYPE_CHECKING:  # a type checker reads the imports above: an Any here would hide every error from it

    def __getattr__(name: str) -> Any:
        """Load a public name from where it lives."""
        if name not in _HOME:
            raise AttributeError(f"module 'netclust' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"netclust.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names too, also those that nobody has used yet."""
    return sorted({*globals(), *__all__})

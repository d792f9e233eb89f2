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
    from netclust.arrays import Detection, detect, train
    from netclust.datasets.item_sets import ItemTable, read_items
    from netclust.datasets.queries import Queries, Query, read_queries
    from netclust.datasets.simulators.capture_simulator import simulate_capture
    from netclust.datasets.simulators.simulate import simulate
    from netclust.errors import InputError, MissingExtraError, ModelError, NetclustError
    from netclust.linking.adaptation import adapt
    from netclust.linking.explanation import Explanation, explain
    from netclust.linking.linker import Linker, LinkerConfig
    from netclust.linking.verdicts import VERDICTS, Verdicts
    from netclust.metrics.clustering_metrics import measure_clustering
    from netclust.models.clustering.cluster_model import ClusterModel
    from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
    from netclust.models.coreference.coreference_metrics import score_documents
    from netclust.models.coreference.formats.documents import Document, Mention
    from netclust.models.coreference.formats.plain import plain_document
    from netclust.models.coreference.formats.reading import read_documents
    from netclust.models.coreference.formats.writing import write_conll
    from netclust.models.coreference.model import CoreferenceModel
    from netclust.models.coreference.settings import CoreferenceSettings
    from netclust.models.coreference.train_coreference import train_coreference
    from netclust.models.network.evaluation import evaluate_network
    from netclust.models.network.params import TrainParams, load_params
    from netclust.models.network.train_network import train_network
    from netclust.models.ranking.rank_model import RankModel, train_ranking
    from netclust.models.ranking.ranking_metrics import measure_rankings
    from netclust.models.ranking.train_ranker import RankSettings
    from netclust.records.batch import Batch
    from netclust.records.frames import as_table, infer_schema
    from netclust.records.reader import RecordReader, read_table
    from netclust.records.schema import Schema, load_schema, parse_schema
    from netclust.records.table import Table
    from netclust.scoring.model import Model
    from netclust.shipped.loading import load_shipped
    from netclust.stream.alerts.alert_events import Alert, AlertEvent
    from netclust.stream.config import load_config, parse_config
    from netclust.stream.daemon.service import Daemon
    from netclust.stream.detection.detector import Detector
    from netclust.stream.packets.capture_files import CaptureFile
    from netclust.stream.packets.capture_labels import load_labels
    from netclust.stream.packets.capture_reader import CaptureReader
    from netclust.stream.packets.connections import connection_maker
    from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
    from netclust.stream.packets.live import open_live
    from netclust.stream.sinks.base import MemorySink, Sink
    from netclust.stream.sources.base import Arrival, MemorySource, Source
    from netclust.stream.sources.record_files import open_records
    from netclust.stream.store.store import Store
    from netclust.structured_models import StructuredModel
    from netclust.structures.pairs import ComputedPairs, PairFeatures, StackedPairs, StoredPairs

_HOMES = {
    "arrays": ("Detection", "detect", "train"),
    "datasets.item_sets": ("ItemTable", "read_items"),
    "datasets.queries": ("Queries", "Query", "read_queries"),
    "datasets.simulators.capture_simulator": ("simulate_capture",),
    "datasets.simulators.simulate": ("simulate",),
    "errors": ("InputError", "MissingExtraError", "ModelError", "NetclustError"),
    "linking.adaptation": ("adapt",),
    "linking.explanation": ("Explanation", "explain"),
    "linking.linker": ("Linker", "LinkerConfig"),
    "linking.verdicts": ("VERDICTS", "Verdicts"),
    "metrics.clustering_metrics": ("measure_clustering",),
    "models.clustering.cluster_model": ("ClusterModel",),
    "models.clustering.text_pairs": ("TextFeatures", "TextPairs"),
    "models.coreference.coreference_metrics": ("score_documents",),
    "models.coreference.formats.documents": ("Document", "Mention"),
    "models.coreference.formats.plain": ("plain_document",),
    "models.coreference.formats.reading": ("read_documents",),
    "models.coreference.formats.writing": ("write_conll",),
    "models.coreference.model": ("CoreferenceModel",),
    "models.coreference.settings": ("CoreferenceSettings",),
    "models.coreference.train_coreference": ("train_coreference",),
    "models.network.evaluation": ("evaluate_network",),
    "models.network.params": ("TrainParams", "load_params"),
    "models.network.train_network": ("train_network",),
    "models.ranking.rank_model": ("RankModel", "train_ranking"),
    "models.ranking.ranking_metrics": ("measure_rankings",),
    "models.ranking.train_ranker": ("RankSettings",),
    "records.batch": ("Batch",),
    "records.frames": ("as_table", "infer_schema"),
    "records.reader": ("RecordReader", "read_table"),
    "records.schema": ("Schema", "load_schema", "parse_schema"),
    "records.table": ("Table",),
    "scoring.model": ("Model",),
    "shipped.loading": ("load_shipped",),
    "stream.alerts.alert_events": ("Alert", "AlertEvent"),
    "stream.config": ("load_config", "parse_config"),
    "stream.daemon.service": ("Daemon",),
    "stream.detection.detector": ("Detector",),
    "stream.packets.capture_files": ("CaptureFile",),
    "stream.packets.capture_labels": ("load_labels",),
    "stream.packets.capture_reader": ("CaptureReader",),
    "stream.packets.connections": ("connection_maker",),
    "stream.packets.flow_table": ("FlowTable", "FlowTimeouts"),
    "stream.packets.live": ("open_live",),
    "stream.sinks.base": ("MemorySink", "Sink"),
    "stream.sources.base": ("Arrival", "MemorySource", "Source"),
    "stream.sources.record_files": ("open_records",),
    "stream.store.store": ("Store",),
    "structured_models": ("StructuredModel",),
    "structures.pairs": ("ComputedPairs", "PairFeatures", "StackedPairs", "StoredPairs"),
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

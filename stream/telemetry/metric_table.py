"""Every metric that the daemon exports: names, types, labels and what they mean. docs/metrics.md is made from it.

>>> documented("netclust_verdicts_total").labels
('verdict',)

    python -m netclust.stream.telemetry.metric_table docs/metrics.md
"""

from __future__ import annotations

import sys
from typing import Final, Literal, NamedTuple, get_args

from netclust.linking.verdicts import VERDICTS, VIAS
from netclust.records.labels import Dropped
from netclust.stream.alerts.alert_events import ClosedBy, Kind, Severity

__all__ = ["LABEL_VALUES", "METRICS", "MetricDoc", "documented", "metrics_page"]

PREFIX: Final = "netclust_"

Type = Literal["counter", "gauge", "histogram"]


class MetricDoc(NamedTuple):
    """One metric."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str


SHED_REASONS: Final = ("late", "stopped", "other")
SUPPRESSED_BY: Final = ("rule", "cooldown", "rate_limit", "severity", "min_records", "other")
CLOSED_BY: Final = (*(by for by in get_args(ClosedBy) if by), "other")
SINK_RESULTS: Final = ("delivered", "refused", "dropped", "spooled", "retried")
DRIFTS: Final = ("link_score", "root_rate")

# What a source passed over. Packets that could not be read:
DECODE_REASONS: Final = (
    "snapped", "too_short", "bad_ip", "bad_transport", "bad_arp", "unknown_link", "not_ip", "too_deep", "bad_length",
    "bad_record", "bad_block", "bad_interface", "unknown_interface", "bad_time", "other",
)  # fmt: skip
# Lines that could not be read:
LINE_REASONS: Final = (
    "columns", "not_a_number", "out_of_range", "not_integer", "too_long", "not_a_time", "long_line", "half_line",
    "bad_header", "no_header", "bad_json", "bad_value",
)  # fmt: skip
# Beside lines, files and writers that could not:
INPUT_REASONS: Final = (
    *LINE_REASONS, "unreadable", "unreadable_files", "unreadable_archive", "truncated_archive", "truncated_file",
    "followed_file_replaced", "followed_file_shortened", "truncated", "lost_position", "refused_writers", "other",
)  # fmt: skip
# What happened to a source that is no loss by itself; skipped_bytes counts bytes:
EVENT_REASONS: Final = (
    "ring_freezes", "interface_down", "interface_removed", "interface_lost", "outgoing_copies", "late_records",
    "late_files", "clock_set_back", "clock_leaps", "packets_out_of_order", "ports_reused", "orphan_fragments",
    "wrong_fragments", "length_beyond_frame", "caplen_above_wirelen", "joined_files", "skipped_bytes",
    "traffic_window_full", "rotated", "writers", "other_events", "unreachable", "sent_twice", "other",
)  # fmt: skip

LABEL_VALUES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("*", "verdict"): VERDICTS,
    ("*", "to"): VIAS,
    ("*", "severity"): get_args(Severity),
    ("*", "what"): DRIFTS,
    ("*", "state"): ("cached", "uncached"),
    ("netclust_alerts_opened_total", "kind"): get_args(Kind),
    ("netclust_feedback_total", "kind"): ("label", "undo"),
    ("netclust_feedback_total", "result"): ("accepted", "refused"),
    ("netclust_alerts_closed_total", "by"): CLOSED_BY,
    ("netclust_alerts_suppressed_total", "by"): SUPPRESSED_BY,
    ("netclust_alert_records_suppressed_total", "by"): SUPPRESSED_BY,
    ("netclust_records_shed_total", "reason"): SHED_REASONS,
    ("netclust_decode_errors_total", "reason"): DECODE_REASONS,
    ("netclust_input_errors_total", "reason"): INPUT_REASONS,
    ("netclust_source_events_total", "reason"): EVENT_REASONS,
    ("netclust_sink_events_total", "result"): SINK_RESULTS,
    ("netclust_ship_messages_total", "result"): SINK_RESULTS,
    ("*", "shipped"): ("records", "verdicts"),
    ("netclust_checkpoints_total", "result"): ("ok", "failed"),
    ("netclust_reloads_total", "result"): ("ok", "failed"),
    ("netclust_labels_dropped_total", "reason"): get_args(Dropped),
    ("netclust_shard_records_dropped_total", "reason"): ("duplicates", "wrong_lane"),
    ("netclust_bus_messages_total", "topic"): ("input", "verdicts", "events", "campaigns"),
    ("netclust_bus_messages_total", "result"): ("read", "unreadable", "written", "skipped", "refused"),
    ("netclust_bus_errors_total", "way"): ("in", "out"),
}
"""The closed lists: what is in none of them is counted as "other", where there is one, and refused elsewhere."""


def label_values(metric: str, label: str) -> tuple[str, ...] | None:
    """The values that a label can have; None: names of the configuration, or what build and model are."""
    return LABEL_VALUES.get((metric, label)) or LABEL_VALUES.get(("*", label))


def _counter(name: str, help: str, *labels: str) -> MetricDoc:  # noqa: A002
    return MetricDoc(f"{PREFIX}{name}_total", "counter", labels, help)


def _gauge(name: str, help: str, *labels: str) -> MetricDoc:  # noqa: A002
    return MetricDoc(f"{PREFIX}{name}", "gauge", labels, help)


def _histogram(name: str, help: str) -> MetricDoc:  # noqa: A002
    return MetricDoc(f"{PREFIX}{name}", "histogram", (), help)


METRICS: Final[tuple[MetricDoc, ...]] = (
    # The process
    _gauge("build_info", "Versions, value 1.", "version", "python", "numba"),
    _gauge("model_info", "The model in use: the start of its fingerprint, its schema.", "fingerprint", "schema"),
    _gauge("model_generation", "How often the model in use was exchanged or updated since the start."),
    _gauge("kernel_cache", "1 for the state that holds: kernels are kept, or compiled at every start.", "state"),
    _gauge("ready", "1 while records are judged, warm-up included; what /readyz says."),
    _gauge("warmup_progress_ratio", "How much of the warm-up is done, 0 to 1."),
    _gauge("heartbeat_timestamp_seconds", "When the linking loop last came round."),
    _gauge("config_last_reload_success_timestamp_seconds", "When a configuration was last taken into use."),
    _gauge("config_last_reload_successful", "1: the last reload was taken into use. 0: it was refused."),
    _counter("reloads", "Reloads asked for.", "result"),
    _gauge("state_dir_free_bytes", "Free bytes where checkpoints and the store are."),
    _gauge("state_dir_size_bytes", "Size of the file system where checkpoints and the store are."),
    _counter("scrape_errors", "Parts that could not be asked during a scrape: their last numbers were shown."),
    # Sources
    _gauge("source_up", "1 while the source is open and has not ended.", "source"),
    _counter("packets", "Packets read.", "source"),
    _counter("bytes", "Bytes read: of packets on the wire, else of the input.", "source"),
    _counter("records", "Records read.", "source"),
    _counter("records_shed", "Records read and not judged, because input outran linking.", "source", "reason"),
    _counter("input_errors", "Lines, records and files that could not be read.", "source", "reason"),
    _counter("decode_errors", "Packets and capture blocks that could not be read in full.", "source", "reason"),
    _counter("source_events", "What else happened to a source.", "source", "reason"),
    _counter(
        "source_gaps",
        "Restarts of a source that cannot be read again after an end that was not in order: what came between is lost.",
        "source",
    ),
    _counter("source_gap_seconds", "Length of those gaps, from the last checkpoint to the restart.", "source"),
    _counter("source_states_refused", "Saved states that could not be used: the source began empty.", "source"),
    _counter("kernel_drops", "Packets dropped before they were read, because the ring was full.", "source"),
    _gauge("flow_table_open", "Connections that are open in the flow table.", "source"),
    _counter("flow_table_evictions", "Connections that were ended early because the flow table was full.", "source"),
    _gauge("queue_records", "Records that wait to be judged.", "source"),
    _gauge("queue_seconds", "How long the oldest of them has waited.", "source"),
    # Linking
    _counter("links", "Records by what they were linked to.", "to"),
    _counter("verdicts", "Records by verdict.", "verdict"),
    _gauge("anomalous_share", "Share of anomalous records, the last 4096 or so."),
    _histogram("link_score", "Scores: best of other and root less best normal. Below 0 is normal, near 0 is unsure."),
    _histogram("verdict_latency_seconds", "From a record's arrival to its verdict."),
    _histogram("batch_seconds", "What a batch took, from the queue to its alerts."),
    _gauge("referents", "Records in the referent window."),
    _gauge("references", "Pinned referents, of the reference set."),
    _gauge("window_fill_ratio", "How full the referent window is, 0 to 1."),
    _gauge("labels", "Names of labels that are known; from 64,512 on, sources bring no new ones. Of shards: the most."),
    _counter(
        "labels_dropped",
        "Records whose label was left out, so that they count as unlabelled: too many different ones, or no name.",
        "reason",
    ),
    _gauge("clusters", "Novel clusters that are remembered."),
    _counter("clusters_opened", "Novel clusters opened."),
    _counter("clusters_forgotten", "Novel clusters given up to make room."),
    _counter("records_matured", "Records that became trusted normal by maturing."),
    # Alerts
    _gauge("alerts_open", "Alerts that are open."),
    _counter("alerts_opened", "Alerts opened.", "kind", "severity"),
    _counter("alerts_closed", "Alerts closed.", "by"),
    _counter("alerts_suppressed", "Alerts that were not told, by what kept them back.", "by"),
    _counter("alert_records_suppressed", "Anomalous records of alerts that were not told.", "by"),
    # Feedback
    _counter("feedback", "Labels and undos given by people and rules.", "kind", "result"),
    _gauge("feedback_pending", "Labels that were accepted and are not in force yet."),
    _gauge("label_events", "Labels that are remembered and can be undone."),
    # Checkpoints and the store
    _counter("checkpoints", "Checkpoints written, or failed.", "result"),
    _gauge("checkpoint_age_seconds", "Since the last good checkpoint, or since the start if there was none."),
    _gauge("checkpoint_seconds", "What the last checkpoint took."),
    _gauge("checkpoint_pause_seconds", "How long detection paused for it."),
    _gauge("checkpoint_bytes", "Its size."),
    _gauge("store_rows", "Alerts in the SQLite store."),
    _gauge("store_bytes", "Size of the SQLite store."),
    # Drift
    _gauge("drift_watched", "1: drift is watched. 0: river is not installed."),
    _gauge("drift_score", "How far the last blocks are from those before, in deviations of a block.", "what"),
    _counter("drift_events", "Changes that were detected.", "what"),
    # Sinks
    _counter("sink_events", "Events by what became of them.", "sink", "result"),
    _counter("sink_errors", "Deliveries that failed, each attempt.", "sink"),
    _gauge("sink_queue", "Events that wait in memory.", "sink"),
    _gauge("sink_spool_bytes", "Events that wait on disk.", "sink"),
    # Shipping
    _counter("ship_records", "Records, and verdicts, that the bus has acknowledged.", "shipped"),
    _counter("ship_messages", "Messages of them by what became of them.", "shipped", "result"),
    _counter("ship_records_skipped", "Records and verdicts that were not shipped, because packing them fell behind."),
    _gauge("ship_down", "1 while the bus does not take what is shipped.", "shipped"),
    _gauge("ship_queue", "Messages that wait in memory.", "shipped"),
    _gauge("ship_spool_bytes", "Messages that wait on disk.", "shipped"),
    # The distributed engine, each worker process its own
    _gauge("shards", "Shards at work in this process."),
    _gauge(
        "shard_behind_seconds",
        "By how much the newest record that a shard has judged is older than now; 0 where its lane is empty.",
        "shard",
    ),
    _counter("shard_records_dropped", "Records that were judged before, or came in another shard's lane.", "reason"),
    _counter("bus_messages", "Messages of a topic. Skipped: written before; refused: too large.", "topic", "result"),
    _counter("bus_errors", "Calls that the bus did not answer; each was tried again.", "way"),
    _counter("bus_positions_lost", "Times that messages had been removed from the bus before they were read."),
)  # fmt: skip
"""All of them; the order is that of /metrics. Beside these there are `process_*` and `python_info`."""

_BY_NAME: Final = {doc.name: doc for doc in METRICS}


def documented(name: str) -> MetricDoc:
    """The description of a metric; KeyError for one that there is not."""
    return _BY_NAME[name]


_PAGE_HEAD = """\
# Metrics

What `/metrics` of a running daemon says, in the Prometheus text format. This page is made from
`stream/telemetry/metric_table.py`
(`python -m netclust.stream.telemetry.metric_table docs/metrics.md`); a test keeps it in step.

The set is bounded: no address, alert, cluster or path is ever a label. `source` and `sink` are names of the
configuration. A reason that is in none of the lists below counts as `other`. Beside these metrics there are
`process_*` and `python_info` of the Prometheus client.

Counters begin at 0 when the daemon starts, except those of the linker and of the gaps of sources
(`netclust_source_gap*`, `netclust_source_states_refused_total`), which its checkpoint carries on. They do not
go down while it runs, also when a reload exchanges a source, a sink or the model.

`netclust_link_score` has buckets below 0, so it has neither `_sum` nor `_count`: its `le="+Inf"` bucket is the count.
Rules and a dashboard that use these names are in `deploy/`; what to do when a rule fires is in the
[runbook](runbook/index.md).
"""


def metrics_page() -> str:
    """docs/metrics.md."""
    lines = [_PAGE_HEAD, "| metric | type | labels | meaning |", "|---|---|---|---|"]
    for doc in METRICS:
        labels = ", ".join(f"`{label}`" for label in doc.labels)
        lines.append(f"| `{doc.name}` | {doc.type} | {labels} | {doc.help} |")
    lines += ["", "## Values of labels", "", "| label | of | values |", "|---|---|---|"]
    for (metric, label), values in LABEL_VALUES.items():
        of = "" if metric == "*" else f"`{metric}`"
        lines.append(f"| `{label}` | {of} | {', '.join(values)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from netclust.foundation.container import write_container_bytes

    write_container_bytes(sys.argv[1], metrics_page().encode())

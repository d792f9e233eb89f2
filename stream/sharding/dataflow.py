"""The dataflow: partitions -> shards -> verdicts, events; clusters of all shards -> campaigns.

    partition p --(position)--> shard p --(snapshot)--+--> verdicts, partition p
                                                      +--> events, partition p
                                                      +--> members --> campaigns --> one partition

Everything up to the campaigns stays on one worker (see placement). Bytewax keeps positions and snapshots of the same
epoch together; all that it is given to keep is text and bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow

from netclust.scoring.model import Model
from netclust.stream.config import Config, ShardingConfig
from netclust.stream.sharding.campaigns import Campaigns
from netclust.stream.sharding.partitions import Bodies, PartitionSink, PartitionSource, Progress
from netclust.stream.sharding.placement import partition_keys
from netclust.stream.sharding.recovery import CAMPAIGNS_STEP, FLOW, INPUT_STEP, SHARDS_STEP
from netclust.stream.sharding.shard import Output, Seen, Shard

__all__ = ["build_flow"]

CAMPAIGNS = "campaigns"
"""The key of all clusters on their way to the campaigns: one step joins them."""

Watch = Callable[[Shard], None]


class _ShardLogic(op.StatefulBatchLogic[Bodies, Output, bytes]):
    """A shard, made when its first message or its snapshot comes."""

    def __init__(
        self, model: Model, config: Config, progress: Progress, resume: bytes | None, watch: Watch, seen: Seen
    ) -> None:
        self._model, self._config, self._progress = model, config, progress
        self._watch, self._seen = watch, seen
        self._shard: Shard | None = None
        if resume is not None:
            self._begin(Shard.restore(model, config, resume, seen=seen))

    def _begin(self, shard: Shard) -> Shard:
        self._shard = shard
        self._watch(shard)
        return shard

    def on_batch(self, values: list[Bodies]) -> tuple[list[Output], bool]:
        """Messages of the partition, in order."""
        shard = self._shard
        if shard is None:
            partitions = self._config.sharding.partitions if self._config.sharding is not None else 1
            shard = self._begin(Shard(self._model, self._config, values[0][0], partitions, seen=self._seen))
        outputs = shard.step([body for _, bodies in values for body in bodies])
        self._progress.last = time.time()
        return outputs, self.RETAIN

    def snapshot(self) -> bytes:
        """Called at the end of an epoch in which something came."""
        state = self._shard.snapshot() if self._shard is not None else b""
        self._progress.kept = time.time()
        return state


class _CampaignLogic(op.StatefulBatchLogic[bytes, bytes, bytes]):
    """What joins the clusters of all shards."""

    def __init__(self, model: Model, config: ShardingConfig, resume: bytes | None) -> None:
        self._campaigns = Campaigns(
            model, gap_seconds=config.campaign_gap_seconds, most=config.max_campaign_clusters, state=resume
        )

    def on_batch(self, values: list[bytes]) -> tuple[list[bytes], bool]:
        """Summaries of clusters, in any order."""
        return [event for body in values for event in self._campaigns.take(body)], self.RETAIN

    def snapshot(self) -> bytes:
        """All clusters that are remembered."""
        return self._campaigns.snapshot()


def build_flow(
    model: Model,
    config: Config,
    sharding: ShardingConfig,
    progress: Progress,
    *,
    watch: Watch = lambda _: None,
    seen: Seen = lambda _: None,
) -> Dataflow:
    """The whole dataflow; `watch` is shown every shard that begins, `seen` every outcome, in their worker's thread."""
    partitions, keys = sharding.partitions, partition_keys(sharding.partitions)
    flow = Dataflow(FLOW)
    source = PartitionSource(sharding.input, partitions, sharding.batch_messages, progress)
    messages = op.input(INPUT_STEP, flow, source)
    outputs = op.stateful_batch(
        SHARDS_STEP, messages, lambda resume: _ShardLogic(model, config, progress, resume or None, watch, seen)
    )
    for kind, url in (("verdicts", sharding.verdicts), ("events", sharding.events)):
        if url:
            some = op.filter_map_value(f"{kind}", outputs, _of_kind(kind))
            op.output(f"write_{kind}", some, PartitionSink(url, partitions, keys, kind, progress))
    if sharding.campaigns:
        members = op.filter_map("members", outputs, _member)
        found = op.stateful_batch(CAMPAIGNS_STEP, members, lambda resume: _CampaignLogic(model, sharding, resume))
        written = op.map_value("campaign_events", found, _unnumbered)
        op.output("write_campaigns", written, PartitionSink(sharding.campaigns, 1, [CAMPAIGNS], "campaigns", progress))
    return flow


def _of_kind(kind: str) -> Callable[[Any], tuple[int, bytes] | None]:
    def pick(output: Any) -> tuple[int, bytes] | None:
        return (output[1], output[2]) if output[0] == kind else None

    return pick


def _member(item: tuple[str, Any]) -> tuple[str, bytes] | None:
    return (CAMPAIGNS, item[1][2]) if item[1][0] == "members" else None


def _unnumbered(body: bytes) -> tuple[int, bytes]:
    return 0, body

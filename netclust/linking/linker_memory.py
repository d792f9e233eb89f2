"""What a linker remembers besides its model and configuration: what a snapshot keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from netclust.kernels.linking import link as kernels
from netclust.linking.feedback import LabelEvent
from netclust.linking.linker_config import LinkerConfig
from netclust.linking.state import PartitionState, new_partition, new_references
from netclust.records.labels import LabelTable
from netclust.scoring.model import Model

__all__ = ["LinkerMemory"]


@dataclass(eq=False)
class LinkerMemory:
    """References with the labels in force, partitions of the window, label events, and how many records there were."""

    labels: LabelTable
    references: kernels.References
    partitions: list[PartitionState]
    tick: int = 0
    events: list[LabelEvent] = field(default_factory=list)
    next_event: int = 0

    @classmethod
    def new(cls, model: Model, config: LinkerConfig) -> LinkerMemory:
        """Return the memory of a linker that has seen no record."""
        partitions = [
            new_partition(model, config.kept, config.max_clusters, config.representatives)
            for _ in range(config.partitions)
        ]
        return cls(model.encoding.label_table(), new_references(model), partitions)

"""The configuration of a linker: what it remembers, for how long, and which labels count."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from netclust.errors import InputError

__all__ = ["Feedback", "Keep", "LinkerConfig"]

Feedback = Literal["none", "predicted", "gold"]
Keep = Literal["reservoir", "medoid", "difficulty"]


class LinkerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the linker remembers. Every number of records counts those of the same partition.

    `label_delay` records after its own, a record's true label (`batch.label`) counts; None: such labels are not read.
    It replaces what was in force, feedback included: the last word said of a record counts.
    `mature_after` seconds of traffic time without an alarm, a record with a normal verdict becomes trusted normal and
    may be linked to, at most `mature_share` of the referent window at a time; None: predicted labels count at once.
    Records mature in order of arrival (one with a time in the future holds up those behind it until it leaves), those
    without a time never, and none whose cluster is not normal or no longer summarised.
    At most `max_events` label events are remembered: older ones stay in force and can no longer be undone.
    At most `representatives` of the records that left the referent window (those that were not withheld) can still be
    linked to: evenly over the clusters, so that a flood crowds out itself and not what is rare. Of a cluster, `keep`
    prefers a uniform sample (`reservoir`), those that most records linked to (`medoid`), or the closest verdicts
    (`difficulty`). A true label that comes after its record left the window does not reach it; feedback does.
    `shard` (p, P): this linker is partition p of P that run apart, and numbers its novel clusters as such.
    """

    referent_window: int = 1000
    gap: int = 0
    whole: bool = False
    label_delay: int | None = None
    mature_after: float | None = None
    mature_share: float = 0.5
    partitions: int = 1
    max_clusters: int = 65_536
    max_events: int = 1024
    shard: tuple[int, int] | None = None
    representatives: int = 0
    keep: Keep = "reservoir"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name, least in (
            ("referent_window", 0),
            ("gap", 0),
            ("partitions", 1),
            ("max_clusters", 1),
            ("max_events", 1),
        ):
            if not least <= getattr(self, name) <= 1 << 24:
                raise InputError(f"{name} must lie between {least} and {1 << 24}, not {getattr(self, name)}")
        if self.label_delay is not None and not 0 <= self.label_delay <= 1 << 24:
            raise InputError(f"label_delay must lie between 0 and {1 << 24}, not {self.label_delay}")
        if not 0 <= self.representatives <= 1 << 16:
            raise InputError(f"representatives must lie between 0 and {1 << 16}, not {self.representatives}")
        if self.keep not in get_args(Keep):
            raise InputError(f"keep is one of {', '.join(get_args(Keep))}, not {self.keep!r}")
        if self.mature_after is not None and not 0 <= self.mature_after < 1e9:
            raise InputError("mature_after is a number of seconds, 0 or more")
        if not 0 <= self.mature_share <= 1:
            raise InputError("mature_share lies between 0 and 1")
        if self.shard is not None and not (0 <= self.shard[0] < self.shard[1] <= 1 << 24 and self.partitions == 1):
            raise InputError(f"shard (p, P) has p below P, and a shard is one partition; not {self.shard}")

    @property
    def kept(self) -> int:
        """How many records a partition keeps: the referent window, and the gap before it."""
        return self.referent_window + self.gap if self.referent_window else 0

    @property
    def mature_cap(self) -> int:
        """How many matured records may be referents at a time."""
        return int(self.mature_share * self.referent_window)

    @classmethod
    def thesis(
        cls, *, referent_window: int = 100, delay: int = 100, feedback: Feedback = "gold", whole: bool = True
    ) -> LinkerConfig:
        """Protocol `thesis`: gap = label delay = d, no window members before a full window lies beyond the gap.

        Not `whole`: what the window holds before it is full is used.
        """
        _check_feedback(feedback)
        return cls(
            referent_window=0 if feedback == "none" else referent_window,
            gap=0 if feedback == "none" else delay,
            whole=whole,
            label_delay=delay if feedback == "gold" else None,
        )

    @classmethod
    def stream(cls, *, referent_window: int = 1000, delay: int = 100, feedback: Feedback = "predicted") -> LinkerConfig:
        """Protocol `stream`: no gap; members carry predicted labels until a true one arrives, `delay` records later."""
        _check_feedback(feedback)
        return cls(
            referent_window=0 if feedback == "none" else referent_window,
            label_delay=delay if feedback == "gold" else None,
        )


def _check_feedback(feedback: str) -> None:
    if feedback not in get_args(Feedback):
        raise InputError(f"feedback is one of {', '.join(get_args(Feedback))}, not {feedback!r}")

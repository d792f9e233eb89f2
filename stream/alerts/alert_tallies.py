"""How often each address, port or cluster is met in an alert, in bounded room, and how many different ones there were.

A tally keeps the values that it meets most: while there are few, every one with its exact count. Then the rarest are
given up from time to time, and a count says "at least". How many different ones there were is exact up to EXACT values
(while the book's budget for exact counting lasts), then an estimate within some 2 percent (HyperLogLog).

>>> tally, budget = Tally(), Budget()
>>> for port in ["80", "22", "80"]:
...     tally.add(port, 1, budget)
>>> tally.top(8), tally.distinct
([Count(value='80', records=2), Count(value='22', records=1)], 2)
"""

from __future__ import annotations

import math
import zlib

import msgspec

from netclust.stream.alerts.alert_events import Count

__all__ = ["BUDGET", "EXACT", "KEPT", "Budget", "Tally"]

KEPT = 64
"""Values that stay when the rarest are given up; at most twice as many are held."""
EXACT = 4096
"""Different values are counted exactly up to here."""
BUDGET = 1 << 18
"""Values that all tallies of a book together may hold for exact counting."""
_BITS = 11
_REGISTERS = 1 << _BITS
_MASK = (1 << 64) - 1


class Budget:
    """What is left for exact counting: shared, so that many alerts at once cannot fill the memory."""

    def __init__(self, values: int = BUDGET) -> None:
        self.left = values


class Tally(msgspec.Struct):
    """Values and their counts. `seen` is used for exact counting of many values, `registers` for estimating."""

    counts: dict[str, int] = msgspec.field(default_factory=dict)
    seen: set[str] | None = None
    registers: bytearray | None = None

    def __post_init__(self) -> None:
        """Refuse registers that are not ours: tallies are read from checkpoints too."""
        if self.registers is not None and len(self.registers) != _REGISTERS:
            raise ValueError(f"{len(self.registers)} registers, not {_REGISTERS}")

    def add(self, value: str, records: int, budget: Budget) -> None:
        """Count a value."""
        if value in self.counts:
            self.counts[value] += records
        else:
            self.miss(value, records, budget)

    def miss(self, value: str, records: int, budget: Budget) -> None:
        """Count a value that is not among `counts` (a caller in a hurry adds to those that are itself)."""
        counts = self.counts
        if len(counts) >= 2 * KEPT:
            if self.seen is None and self.registers is None:
                self.seen = set(counts)
                budget.left -= len(counts)
            # A stable sort: of equals, the one that has been here longest stays.
            self.counts = counts = dict(sorted(counts.items(), key=_by_count)[:KEPT])
        counts[value] = records
        if self.seen is not None:
            self._see(value, budget)
        elif self.registers is not None:
            _register(self.registers, value)

    def _see(self, value: str, budget: Budget) -> None:
        seen = self.seen
        if seen is None or value in seen:
            return
        seen.add(value)
        budget.left -= 1
        if len(seen) > EXACT or budget.left < 0:
            self.registers = bytearray(_REGISTERS)
            for each in seen:
                _register(self.registers, each)
            self.release(budget)

    def release(self, budget: Budget) -> None:
        """Give back what exact counting held."""
        if self.seen is not None:
            budget.left += len(self.seen)
            self.seen = None

    @property
    def distinct(self) -> int:
        """How many different values there were."""
        if self.registers is not None:
            return _estimate(self.registers)
        return len(self.counts if self.seen is None else self.seen)

    def top(self, count: int) -> list[Count]:
        """The most frequent values."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], len(item[0]), item[0]))
        return [Count(value, records) for value, records in ranked[:count]]


def _by_count(item: tuple[str, int]) -> int:
    return -item[1]


def _register(registers: bytearray, value: str) -> None:
    """HyperLogLog's step; the hash must be the same in every process, so it is not Python's own."""
    h = (zlib.crc32(value.encode(errors="replace")) + 1) * 0x9E3779B97F4A7C15 & _MASK
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93 & _MASK
    h ^= h >> 32
    rank = 65 - _BITS - (h >> _BITS).bit_length()
    if rank > registers[h & (_REGISTERS - 1)]:
        registers[h & (_REGISTERS - 1)] = rank


def _estimate(registers: bytearray) -> int:
    """HyperLogLog, with linear counting where many registers are empty."""
    m = len(registers)
    present = [registers.count(rank) for rank in range(65 - _BITS + 1)]
    guess = 0.7213 / (1 + 1.079 / m) * m * m / sum(n * 2.0**-rank for rank, n in enumerate(present))
    if guess <= 2.5 * m and present[0]:
        guess = m * math.log(m / present[0])
    return round(guess)

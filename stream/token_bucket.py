"""A token bucket: so many at once, and so many a second after that."""

from __future__ import annotations

__all__ = ["Bucket"]


class Bucket:
    """Holds `burst` at most and gains `per_second`.

    >>> bucket = Bucket(2, 0.5, now=0.0)
    >>> bucket.take(0.0), bucket.take(0.0), bucket.take(0.0), bucket.wait(0.0), bucket.take(2.0)
    (True, True, False, 2.0, True)
    >>> bucket.take_some(100.0, 5)
    2
    """

    __slots__ = ("_level", "_seen", "burst", "per_second")

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self.burst, self.per_second = burst, per_second
        self._level, self._seen = float(burst), now

    def level(self, now: float) -> float:
        """What it holds."""
        if now > self._seen:
            self._level = min(self.burst, self._level + (now - self._seen) * self.per_second)
            self._seen = now
        return self._level

    def wait(self, now: float) -> float:
        """Seconds until one can be taken."""
        return max(0.0, (1.0 - self.level(now)) / self.per_second)

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        if self.wait(now) > 1e-6:  # rounding makes nobody wait another second
            return False
        self._level = max(0.0, self._level - 1.0)
        return True

    def take_some(self, now: float, wanted: int) -> int:
        """Take as many whole ones as there are, up to what is wanted; how many."""
        given = min(wanted, int(self.level(now)))
        self._level -= given
        return given

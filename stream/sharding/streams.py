"""Which record is which: streams of sensors as numbers, and what was heard of each already.

A sensor may send again what it does not know to have arrived: of one stream only records with a higher number than
the last count. So many streams are remembered; the one that was silent longest is given up for a new one.

>>> streams = Streams(most=2)
>>> streams.fresh("a", "1", "eth0", np.array([0, 1, 2], np.uint64))
(0, 0)
>>> streams.fresh("a", "1", "eth0", np.array([1, 2, 3], np.uint64))
(0, 2)
>>> streams.fresh("b", "1", "eth0", np.array([0], np.uint64)), streams.name(1)
((1, 0), 'b/eth0')
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError

__all__ = ["MAX_STREAMS", "Streams"]

MAX_STREAMS = 4096

Key = tuple[str, str, str]
_RECORD = re.compile(r"([Rr]ecord )([0-9]{1,5}:[0-9]{1,20})\b")


class _One(msgspec.Struct, array_like=True):
    sensor: str
    stream: str
    source: str
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
    last: Annotated[int, msgspec.Meta(ge=-1)]


class Streams:
    """Of every stream its number and its last record, the one that was silent longest first."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self._of: dict[Key, _One] = {}
        self._by_number: dict[int, _One] = {}
        self.given_up = 0

    def fresh(self, sensor: str, stream: str, source: str, seq: NDArray[np.uint64]) -> tuple[int, int]:
        """The number of the stream, and how many of these records (in rising order) were there before."""
        key = (sensor, stream, source)
        one = self._of.pop(key, None)
        if one is None:
            one = self._new(key)
        self._of[key] = one
        old = int(np.searchsorted(seq, np.uint64(one.last), side="right")) if one.last >= 0 else 0
        if len(seq) > old:
            one.last = int(seq[-1])
        return one.number, old

    def _new(self, key: Key) -> _One:
        number = len(self._of)
        if number == self._most:
            number = self._of.pop(next(iter(self._of))).number
            self.given_up += 1
        self._by_number[number] = one = _One(*key, number=number, last=-1)
        return one

    def name(self, number: int) -> str:
        """What alerts call it: sensor and source."""
        one = self._by_number.get(number)
        return "" if one is None else f"{one.sensor}/{one.source}"

    def parts(self, number: int) -> Key:
        """Sensor, stream and source."""
        one = self._by_number[number]
        return one.sensor, one.stream, one.source

    def record(self, text: str) -> str:
        """A record id, `NUMBER:SEQ` here, as everybody knows it: `SENSOR/SOURCE:SEQ`. Other text stays as it is."""
        number, colon, seq = text.partition(":")
        if not colon or not number.isdigit() or not seq.isdigit():
            return text
        return f"{self.name(int(number))}:{seq}"

    def text(self, text: str) -> str:
        """The same of the records that a text names.

        >>> streams = Streams()
        >>> _ = streams.fresh("a", "1", "eth0", np.array([7], np.uint64))
        >>> streams.text("Record 0:7 is novel, at 10:30")
        'Record a/eth0:7 is novel, at 10:30'
        """
        return _RECORD.sub(lambda found: found[1] + self.record(found[2]), text)

    def numbers(self, sensor: str, source: str, stream: str) -> list[int]:
        """The streams that may be meant, the one heard last first; `stream` may be empty."""
        return [
            one.number
            for one in reversed(self._of.values())
            if (one.sensor, one.source) == (sensor, source) and stream in ("", one.stream)
        ]

    def names(self) -> list[str]:
        """Of all numbers, in order."""
        return [self.name(number) for number in range(len(self._by_number))]

    def state(self) -> list[_One]:
        """For a snapshot."""
        return list(self._of.values())

    def restore(self, raw: Any, where: str) -> None:
        """Go on from a snapshot."""
        try:
            found = msgspec.convert(raw, list[_One])
        except msgspec.ValidationError as error:
            raise ModelError(f"{where}: streams: {error}") from None
        if sorted(one.number for one in found) != list(range(len(found))) or len(found) > self._most:
            raise ModelError(f"{where}: the streams are not numbered one by one")
        if any(one.last >= 1 << 64 for one in found):
            raise ModelError(f"{where}: a stream has come further than there are numbers")
        self._of = {(one.sensor, one.stream, one.source): one for one in found}
        self._by_number = {one.number: one for one in found}

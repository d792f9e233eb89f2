"""Payload templates of the capture simulator: real protocol bytes in which some fields change from message to message.

>>> pool = TrafficTemplates()
>>> pool.add(b"GET /", template_digits(4), b" HTTP/1.1\\r\\n\\r\\n")
1
>>> pool.once("greeting", lambda: (b"hello",)), pool.once("greeting", lambda: (b"hello",)), len(pool)
(2, 2, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets.packet_frames import DECIMAL, DIGITS, HEX, LENGTH, LITTLE, RANDOM, TAG

__all__ = [
    "EMPTY",
    "Part",
    "Parts",
    "Patch",
    "TrafficTemplates",
    "size_of",
    "template_digits",
    "template_hexdigits",
    "template_length",
    "template_length_decimal",
    "template_length_little_endian",
    "template_noise",
    "template_tag",
]  # fmt: skip

EMPTY = 0
"""The template without bytes: a message that is filler alone."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A field of `width` bytes; patches of lower rank draw first, so a reply can repeat what a request drew."""

    kind: int
    width: int
    extra: int = 0
    rank: int = 1


Part = bytes | Patch
Parts = tuple[Part, ...]


def template_noise(width: int, rank: int = 1) -> Patch:
    """Return random bytes."""
    return Patch(RANDOM, width, rank=rank)


def template_hexdigits(width: int) -> Patch:
    """Return random hexadecimal digits."""
    return Patch(HEX, width)


def template_digits(width: int) -> Patch:
    """Return random decimal digits."""
    return Patch(DIGITS, width)


def template_tag() -> Patch:
    """Return two bytes that request and reply of one exchange share."""
    return Patch(TAG, 2)


def template_length(extra: int = 0) -> Patch:
    """Return the length of the filler behind the template (at most 16,384), and `extra`, in two bytes."""
    return Patch(LENGTH, 2, extra)


def template_length_little_endian() -> Patch:
    """Return the length of the filler in four bytes, the lowest first."""
    return Patch(LITTLE, 4)


def template_length_decimal() -> Patch:
    """Return the length of the filler as text, padded with spaces."""
    return Patch(DECIMAL, 9)


def size_of(parts: tuple[Part, ...]) -> int:
    """How many bytes the parts take up.

    >>> size_of((b"ab", template_noise(4)))
    6
    """
    return sum(len(part) if isinstance(part, bytes) else part.width for part in parts)


class TrafficTemplates:
    """Grows as kinds of traffic ask for templates; the kernels read `book()`."""

    def __init__(self) -> None:
        self._blob = bytearray()
        self._place: list[tuple[int, int, int, int]] = []
        self._patches: list[tuple[int, int, int]] = []
        self._known: dict[Hashable, int] = {}
        self.add(b"")

    def __len__(self) -> int:
        """How many templates."""
        return len(self._place)

    def add(self, *parts: Part) -> int:
        """A new template; its number."""
        start, first = len(self._blob), len(self._patches)
        found: list[tuple[int, int, int, int]] = []
        for part in parts:
            if isinstance(part, bytes):
                self._blob += part
            else:
                # A length field has a fixed width: its place in the table holds what is added instead.
                width = part.extra if part.kind == LENGTH else part.width
                found.append((part.rank, len(self._blob) - start, width, part.kind))
                self._blob += bytes(part.width)
        self._patches += [patch[1:] for patch in sorted(found, key=lambda patch: patch[0])]
        self._place.append((start, len(self._blob) - start, first, len(self._patches)))
        return len(self._place) - 1

    def once(self, key: Hashable, make: Callable[[], tuple[Part, ...]]) -> int:
        """The template of this key, made when it is first asked for."""
        if key not in self._known:
            self._known[key] = self.add(*make())
        return self._known[key]

    def mark(self) -> tuple[int, int, int]:
        """Where it stands, for `forget`."""
        return len(self._place), len(self._blob), len(self._patches)

    def forget(self, mark: tuple[int, int, int]) -> None:
        """Drop what was added without a key since the mark; nothing with a key may have been added since."""
        del self._place[mark[0] :], self._blob[mark[1] :], self._patches[mark[2] :]

    def book(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Bytes; start, length and patches of every template; place, width and kind of every patch."""
        return (
            np.frombuffer(bytes(self._blob) + b"\0", np.uint8),
            np.array(self._place, np.int64).reshape(-1, 4),
            np.array([*self._patches, (0, 0, 0)], np.int64).reshape(-1, 3),
        )

"""How often a token may be guessed, and how often something may be changed: token buckets, bounded in number.

Ten wrong tokens of an address are compared, then one every six seconds; until then the right one is not looked at
either, or guessing would not be slowed. All addresses together have a bucket too: when it is empty, addresses that have
failed wait, others do not.

>>> now = 0.0
>>> limits = RequestLimits(clock=lambda: now)
>>> for _ in range(10):
...     limits.note_wrong("192.0.2.7")
>>> limits.wait_to_try("192.0.2.7"), limits.wait_to_try("192.0.2.8")
(6, 0)
>>> now = 6.0
>>> limits.wait_to_try("192.0.2.7")
0
"""

from __future__ import annotations

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from netclust.stream.token_bucket import Bucket

__all__ = ["ADDRESSES", "RequestLimits", "address_block"]

ADDRESSES = 1024
"""Addresses whose wrong tokens are remembered; beyond, the one that failed longest ago is forgotten."""

WRONG_BURST, WRONG_PER_SECOND = 10, 1 / 6
ALL_WRONG_BURST, ALL_WRONG_PER_SECOND = 100, 2.0
WRITE_BURST, WRITES_PER_SECOND = 200, 20.0
LOG_SECONDS = 60.0

_log = logging.getLogger("netclust.http")


class RequestLimits:
    """What one server has counted. Asked from one thread. Waits are whole seconds, as Retry-After says them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        now = clock()
        self._wrong: OrderedDict[str, Bucket] = OrderedDict()  # of those that failed, the newest failure last
        self._all_wrong = Bucket(ALL_WRONG_BURST, ALL_WRONG_PER_SECOND, now)
        self._writes = Bucket(WRITE_BURST, WRITES_PER_SECOND, now)
        self._logged: dict[str, float] = {}

    def wait_to_try(self, address: str) -> int:
        """Seconds before a token from there is compared; 0: now."""
        key, now = address_block(address), self._clock()
        own = self._wrong.get(key)
        if own is None:
            return 0
        if own.level(now) >= own.burst:  # its failures are forgiven
            del self._wrong[key]
            return 0
        wait = _whole(max(own.wait(now), self._all_wrong.wait(now)))
        if wait:
            self._warn("wrong", "too many wrong tokens, the last refused from %s: it waits %d s", key, wait)
        return wait

    def note_wrong(self, address: str) -> None:
        """A token from there was compared, and was wrong."""
        key, now = address_block(address), self._clock()
        own = self._wrong.pop(key, None) or Bucket(WRONG_BURST, WRONG_PER_SECOND, now)
        self._wrong[key] = own
        own.take(now)
        self._all_wrong.take(now)
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)

    def wait_to_write(self) -> int:
        """Seconds before something may be changed; 0: now, and it is counted."""
        now = self._clock()
        if self._writes.take(now):
            return 0
        wait = max(1, _whole(self._writes.wait(now)))
        self._warn("writes", "too many changes over HTTP: they are refused for %d s", wait)
        return wait

    def _warn(self, what: str, message: str, *args: object) -> None:
        now = self._clock()
        if now - self._logged.get(what, -math.inf) >= LOG_SECONDS:  # a flood of requests is no flood of lines
            self._logged[what] = now
            _log.warning(message, *args)


def address_block(address: str) -> str:
    """What counts as one address: an IPv6 host has a whole /64 to guess from.

    >>> address_block("::ffff:192.0.2.7"), address_block("2001:db8::1:2:3:4"), address_block("")
    ('192.0.2.7', '2001:db8::/64', '')
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(ip) >> 64 << 64)}/64"


def _whole(seconds: float) -> int:
    return math.ceil(seconds - 1e-6)

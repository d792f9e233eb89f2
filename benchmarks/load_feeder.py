"""Feeds a daemon: lines of files over TCP by several writers, at the rates of a plan. A process of its own.

    python benchmarks/load_feeder.py '{"port": 9000, "writers": 3, "pools": {"mixed": "lines.txt"},
                                       "plan": [[10.0, 5000, "mixed"]]}'

A plan is a list of phases: seconds, lines a second (0: as many as are taken), and the pool that they come from, which
begins anew at its end. A line that the daemon's kernel takes counts as sent. A sender that is made to wait catches up
later, and gives up what is left of a phase when its time has been over for a second.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import Any

TICK = 0.01
AT_MOST = 512
"""Lines a write."""
PATIENCE = 1.0


class Pool:
    """Lines that are given again and again."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._lines = file.read().splitlines(keepends=True)
        self._at = 0

    def take(self, count: int) -> tuple[bytes, int]:
        """Some lines, at most so many."""
        part = self._lines[self._at : self._at + count]
        self._at = (self._at + len(part)) % len(self._lines)
        return b"".join(part), len(part)


class Feeder:
    """The writers, each a connection; they write in turn."""

    def __init__(self, port: int, writers: int, pools: dict[str, str]) -> None:
        self._pools = {name: Pool(path) for name, path in pools.items()}
        self._writers = [socket.create_connection(("127.0.0.1", port)) for _ in range(writers)]
        self._turn = 0
        self.sent = 0

    def phase(self, seconds: float, rate: float, pool: str) -> dict[str, Any]:
        """One phase of the plan; what was sent."""
        began, before = time.monotonic(), self.sent
        whole = round(seconds * rate)
        while True:
            passed = time.monotonic() - began
            sent = self.sent - before
            if (rate and sent >= whole) or passed >= seconds + (PATIENCE if rate else 0.0):
                break
            due = min(int(passed * rate), whole) - sent if rate else AT_MOST
            if due <= 0:
                time.sleep(TICK)
            else:
                self._write(pool, min(due, AT_MOST))
        return {"pool": pool, "asked": rate, "sent": self.sent - before, "seconds": time.monotonic() - began}

    def _write(self, pool: str, count: int) -> None:
        data, lines = self._pools[pool].take(count)
        self._writers[self._turn].sendall(data)
        self._turn = (self._turn + 1) % len(self._writers)
        self.sent += lines

    def close(self) -> None:
        """Say on every connection that there is no more."""
        for writer in self._writers:
            writer.close()


def main() -> None:
    """Feed by the plan that was given; tell when the pools are read, after each phase, and at the end."""
    order = json.loads(sys.argv[1])
    feeder = Feeder(order["port"], order["writers"], order["pools"])
    began = time.monotonic()
    for seconds, rate, pool in order["plan"]:
        print(json.dumps(feeder.phase(seconds, rate, pool)), flush=True)
    feeder.close()
    print(json.dumps({"sent": feeder.sent, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()

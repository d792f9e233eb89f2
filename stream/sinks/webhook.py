"""Posts each event, as the document of `netclust.stream.sinks.ecs`, to a URL.

One event a request, so that an `Idempotency-Key` stands for one event and a receiver refuses one event, not a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts
from netclust.stream.sinks.ecs import encode_ecs
from netclust.stream.sinks.http_post import HttpPost


class Webhook:
    """2xx: delivered. 408, 425, 429, 5xx and 401, 403, 404 (people put them right): again. Other 4xx: refused."""

    cuts_back = False
    batch_events = 1

    def __init__(
        self,
        name: str,
        url: str,
        *,
        observer: str = "",
        headers: Mapping[str, str] | None = None,
        token_file: str = "",
        ca_file: str = "",
        timeout: float = 5.0,
    ) -> None:
        self.name = name
        self._http = HttpPost(url, headers=headers, token_file=token_file, ca_file=ca_file, timeout=timeout)
        self._observer = observer

    def open(self, facts: Facts | None) -> None:
        """Check what can be checked without the receiver."""
        self._http.check()

    def write(self, events: Sequence[Event]) -> None:
        """Post them, one after the other."""
        for event in events:
            key = event.key.encode("ascii", "replace").decode()[:255]
            printable_key = "".join(c if "!" <= c <= "~" else "?" for c in key)
            self._http.post(encode_ecs(event, self._observer), {"Idempotency-Key": printable_key})

    def sync(self) -> Facts:
        """Nothing to keep."""
        return {}

    def reopen(self) -> None:
        """Connect anew."""
        self._http.close()

    def close(self) -> None:
        """Hang up."""
        self._http.close()

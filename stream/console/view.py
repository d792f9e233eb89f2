"""What the console's API looks at: the store's history, and what lives in memory while the daemon runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netclust.stream.alerts.alert_events import Alert
from netclust.stream.console.events import EventHub
from netclust.stream.console.forest import LinkForest
from netclust.stream.console.history import History
from netclust.stream.console.overview import Overview
from netclust.stream.console.triage import Triage
from netclust.stream.store.store import Store

__all__ = ["View"]

Captures = Callable[[Alert], tuple[list[Path], str]]


class View:
    """Everything that is shown. `instance` is another one after every start of the daemon.

    `classes`: how many of the lowest clusters are the model's own classes. `captures`: the files in which an alert's
    packets are, or why there are none.
    """

    def __init__(
        self,
        store: Store,
        *,
        classes: Callable[[], int] = lambda: 0,
        captures: Captures = lambda alert: ([], "no packets are at hand"),
    ) -> None:
        self.instance = secrets.token_hex(8)
        self.store = store
        self.history = History(store)
        self.triage = Triage(store)
        self.forest = LinkForest()
        self.overview = Overview()
        self.hub = EventHub()
        self.now: dict[str, Any] | None = None
        self.classes = classes
        self.captures = captures

"""Sources of text for tests: what they give as plain rows, with a limit on how long is waited for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from netclust.datasets.simulators.simulate import simulate
from netclust.records.schema import Schema
from netclust.records.table import Table
from netclust.stream.config import SourceConfig
from netclust.stream.sources.base import Arrival, SourceState
from netclust.stream.sources.records import TextSource, open_text_source

PATIENCE = 20.0
LINES = [line + "\n" for line in simulate(3000, seed=5).lines()]

Row = tuple[Any, ...]


def text_source(path: str | Path, kind: Any = "records", schema: Schema | None = None, **settings: Any) -> TextSource:
    return open_text_source(SourceConfig(kind=kind, name="test", path=str(path), **settings), schema)


def opened(path: str | Path, state: SourceState | None = None, kind: Any = "records", **settings: Any) -> TextSource:
    source = text_source(path, kind, **settings)
    source.open(state)
    return source


def rows(table: Table) -> list[Row]:
    """Every record as values, its number first."""
    coded = [[table.symbols[s][k] for k in table.sym[:, s]] for s in range(table.sym.shape[1])]
    columns = [table.seq.tolist(), table.num.tolist(), *coded, table.time.tolist(), table.label_names().tolist()]
    columns += [column.tolist() for column in table.context.values()]
    return list(zip(*columns, strict=True))


def read_all(source: TextSource) -> list[Row]:
    """All that a source gives until it ends; then it is closed."""
    found = [row for arrival in source for row in rows(arrival.table)]
    source.close()
    return found


class Watched:
    """A source that runs step by step in the test's own thread."""

    def __init__(self, source: TextSource) -> None:
        self.source = source
        self.rows: list[Row] = []
        self.arrivals: Iterator[Arrival] = iter(source)
        self.state: SourceState | None = None

    def until(self, done: Callable[[], bool]) -> None:
        """Take arrivals until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, (len(self.rows), self.source.counters, self.source.first_skipped)
            arrival = next(self.arrivals)
            self.rows += rows(arrival.table)
            self.state = arrival.state or self.state

    def until_rows(self, count: int) -> None:
        self.until(lambda: len(self.rows) >= count)

    def idle(self, seconds: float) -> None:
        """Take arrivals for some time."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until)

    def finish(self) -> SourceState:
        """Stop it; what it gives until then counts."""
        self.source.stop()
        for arrival in self.arrivals:
            self.rows += rows(arrival.table)
            self.state = arrival.state or self.state
        self.source.close()
        assert self.state is not None
        return self.state


def expected(lines: list[str], folder: Path) -> list[Row]:
    """What a plain file with these lines gives."""
    path = folder / "expected.txt"
    path.write_text("".join(lines))
    return read_all(opened(path))

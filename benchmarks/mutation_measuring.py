"""Noting what tests execute: all are run once in a process of their own, and watched.

A test counts for mutants if it passes, starts no process and does not take long.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from mutation_processes import Quick, TooLong, compilations, forget, forked, run_pytest

LONGEST_TEST = 8.0
"""Seconds of computing; a test that takes longer while it is watched, which takes some times longer, is left out."""


@dataclass(frozen=True)
class Measured:
    """One test: its seconds and what it executes, as `path:line`."""

    seconds: float
    lines: frozenset[str]


class _Measuring(Quick):
    """Notes per test how long it takes, what it executes of some files, and whether it starts a process."""

    def __init__(self, targets: dict[str, str]) -> None:
        self._targets = targets
        self._known: dict[str, str | None] = {}
        self._lines: set[str] = set()
        self._fixtures: dict[int, set[str]] = {}
        self._left: dict[CodeType, set[int]] = {}  # lines of functions that the test has not executed yet
        self._started = False
        self._failed = False
        self._began = 0.0
        self.found: dict[str, tuple[float, list[str]]] = {}
        self.left_out: dict[str, str] = {}
        sys.addaudithook(self._audit)

    def compiled(self, seconds: float) -> None:
        """A kernel was compiled, which is not what the test costs."""
        self._began += seconds

    def _audit(self, event: str, _: object) -> None:
        if event in {"subprocess.Popen", "os.fork", "os.posix_spawn"}:
            self._started = True

    def _global(self, frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if name not in self._known:
            self._known[name] = self._targets.get(os.path.realpath(name))
        path, code = self._known[name], frame.f_code
        if path is None:
            return None
        if time.process_time() - self._began > LONGEST_TEST:
            raise TooLong
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = {line for *_, line in code.co_lines() if line}
        elif not left:  # all is known of it: to watch it on would take long
            return None

        def local(frame: FrameType, event: str, _: object) -> Any:
            self._lines.add(f"{path}:{frame.f_lineno}")
            left.discard(frame.f_lineno)
            return local

        return local(frame, event, _)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        outer, self._lines = self._lines, set()
        self._left.clear()
        try:
            return (yield)
        finally:
            self._left.clear()
            if fixturedef.scope != "function":  # run for the first test, used by all
                self._fixtures[id(fixturedef)] = self._lines
            self._lines = self._lines | outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._lines, self._started, self._failed = set(), False, False
        self._left.clear()
        forget()  # else only the first test that needs something remembered would execute how it is made
        self._began = time.process_time()
        threading.settrace(self._global)
        sys.settrace(self._global)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            seconds = time.process_time() - self._began
            for fixtures in getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values():
                for fixture in fixtures:
                    self._lines |= self._fixtures.get(id(fixture), set())
            if self._failed or self._started or seconds > LONGEST_TEST:
                long = f"takes {seconds:.1f} s" if seconds > LONGEST_TEST else ""
                why = long or ("starts a process" if self._started else "fails or is skipped")
                self.left_out[item.nodeid] = why
            elif self._lines:
                self.found[item.nodeid] = (seconds, sorted(self._lines))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed or report.skipped


def measure(arguments: Sequence[str], files: Sequence[Path], into: Path) -> None:
    """Run tests in a child and write what each executes of some files to a JSON file."""

    def work() -> int:
        plugin = _Measuring({os.path.realpath(path): str(path) for path in files})
        with tempfile.TemporaryDirectory() as scratch, compilations(lambda: None, plugin.compiled):
            code = run_pytest(arguments, plugin, scratch)
        if code in {0, 1}:
            into.write_text(json.dumps({"tests": plugin.found, "left_out": plugin.left_out}))
        return code

    forked(work, output=into.with_suffix(".log"))
    if not into.is_file():
        raise SystemExit(f"the tests could not be measured, see {into.with_suffix('.log')}")


def read_measured(path: Path) -> dict[str, Measured]:
    """What `measure` has written."""
    tests = json.loads(path.read_text())["tests"]
    return {name: Measured(seconds, frozenset(lines)) for name, (seconds, lines) in tests.items()}

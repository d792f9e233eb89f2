"""Running tests against mutants, each in a process of its own.

One process collects the tests, and from it is forked each mutant of a function: the function's code is exchanged there
and its tests are run, until one fails (`run_functions`). A mutant outside functions has a process that imports the
changed module as it would the file (`run_module`). So a mutant of a function costs what its tests cost, and no file of
the tree is ever changed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import inspect
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from common import ROOT
from mutation_processes import Quick, TooLong, compilations, forget, forked, run_pytest

TESTS_SECONDS = 12.0
"""Tests are run against a mutant up to this sum of seconds, as they were measured; a survivor costs as much."""

OWN_SECONDS = 6.0


@dataclass
class Case:
    """One mutant: the tests that execute it with their seconds, the changed code; `scope` is "" outside functions."""

    path: Path
    scope: str
    tests: dict[str, float]
    code: Callable[[], CodeType] = field(repr=False)


class Order:
    """Which tests are run against a mutant first: those that have noticed most others for what they cost."""

    def __init__(self) -> None:
        self._noticed: Counter[str] = Counter()

    def noticed(self, test: str) -> None:
        """A test has noticed a mutant."""
        self._noticed[test] += 1

    def of(self, case: Case) -> tuple[list[str], float]:
        """The tests to run, and how long they may compute."""
        ranked = sorted(case.tests, key=lambda test: (-(self._noticed[test] + 0.3) / (case.tests[test] + 0.02), test))
        chosen, total = [], 0.0
        for test in ranked:
            if total + case.tests[test] <= TESTS_SECONDS:
                chosen.append(test)
                total += case.tests[test]
        return chosen, OWN_SECONDS + total


class _Failing(Quick):
    """Runs the chosen tests, in their order, until one fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._tests = tests
        self.failed = False
        self.compiles = False
        self.collected: dict[str, pytest.Item] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.collected = {item.nodeid: item for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.run(self._tests)
        return True

    def run(self, tests: Sequence[str]) -> int:
        chosen = [self.collected[name] for name in tests if name in self.collected]
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            with compilations(self._refuse, lambda _: None):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.compiles:
                return 4
            if self.failed:
                self.note(item.nodeid)
                return 1
        return 0

    def _refuse(self) -> None:
        self.compiles = True
        raise TooLong

    def note(self, test: str) -> None:
        """A test has failed."""


class _Forking(_Failing):
    """Collects tests once, and runs every mutant in a fork of the process that has collected them."""

    def __init__(self, cases: Sequence[Case], report: Callable[[int, str], None], scratch: str) -> None:
        super().__init__([])
        self._cases = cases
        self._report = report
        self._order = Order()
        self._noticing = Path(scratch, "noticing")  # the test that has failed, from a child

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
        _make_fixtures(self.collected[test] for case in self._cases for test in case.tests if test in self.collected)
        functions = _functions({os.path.realpath(case.path) for case in self._cases})
        gc.collect()
        gc.freeze()
        for number, case in enumerate(self._cases):
            tests, seconds = self._order.of(case)
            self._noticing.unlink(missing_ok=True)
            outcome = forked(partial(self._child, case, tests, functions), cpu=seconds)
            if self._noticing.is_file():
                self._order.noticed(self._noticing.read_text())
            self._report(number, outcome)
        return True

    def _child(self, case: Case, tests: Sequence[str], functions: dict[tuple[str, str], list[FunctionType]]) -> int:
        try:
            _exchange(case, functions)
        except (LookupError, ValueError):
            return 3
        return self.run(tests)

    def note(self, test: str) -> None:
        self._noticing.write_text(test)


def _make_fixtures(items: Iterable[pytest.Item]) -> None:
    """Make what whole files of tests share, such as trained models, once and before any code is changed.

    A mutant that spoils nothing but these is not noticed here, though it would be: the figures err to that side.
    """
    made: dict[int, Any] = {}

    def make(name: str, known: Mapping[str, Sequence[Any]]) -> Any:
        fixture = known[name][-1]
        if id(fixture) not in made:
            if fixture.scope == "function" or fixture.params or inspect.isgeneratorfunction(fixture.func):
                raise LookupError(name)
            value = fixture.func(**{other: make(other, known) for other in fixture.argnames})
            fixture.cached_result = (value, None, None)
            fixture.execute = lambda request: value
            made[id(fixture)] = value
        return made[id(fixture)]

    for item in items:
        known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for name in known:
            with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
                make(name, known)
    forget()  # what was remembered on the way, a mutant shall make again


def _functions(files: set[str]) -> dict[tuple[str, str], list[FunctionType]]:
    """All functions of some files that exist now, by file and name."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            path = os.path.realpath(thing.__code__.co_filename)
            if path in files:
                found.setdefault((path, thing.__code__.co_qualname), []).append(thing)
    return found


def _exchange(case: Case, functions: dict[tuple[str, str], list[FunctionType]]) -> None:
    """Give a function the changed code. LookupError, ValueError: it is not there, or uses other names from outside."""
    olds = functions[os.path.realpath(case.path), case.scope]
    news = [code for code in _codes(case.code()) if code.co_qualname == case.scope]
    by_line = {code.co_firstlineno: code for code in news}
    for old in olds:  # a property has several functions of one name
        old.__code__ = by_line[old.__code__.co_firstlineno]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def run_functions(cases: Sequence[Case], arguments: Sequence[str], note: Callable[[int, str], None]) -> None:
    """Run mutants of functions; `note(number, outcome)` is called for each as it ends."""
    reading, writing = os.pipe()

    def work() -> int:
        os.close(reading)

        def report(number: int, outcome: str) -> None:
            os.write(writing, f"{number} {outcome}\n".encode())

        with tempfile.TemporaryDirectory() as scratch:
            return run_pytest(arguments, _Forking(cases, report, scratch), scratch)

    with tempfile.NamedTemporaryFile("w+") as output:
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(output.fileno(), 1)
                work()
            finally:
                os._exit(0)
        os.close(writing)
        ended = 0
        with os.fdopen(reading) as lines:
            for line in lines:
                number, outcome = line.split()
                note(int(number), outcome)
                ended += 1
        os.waitpid(pid, 0)
        if ended < len(cases):
            raise SystemExit(f"only {ended} of {len(cases)} mutants were run:\n{Path(output.name).read_text()[-4000:]}")


def run_module(case: Case) -> str:
    """Run a mutant outside functions, or one whose code could not be exchanged: the changed module is imported."""

    tests, seconds = Order().of(case)

    def work() -> int:
        plugin = _Failing(tests)
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
        with tempfile.TemporaryDirectory() as scratch:
            with _imported_instead(case):  # now: pytest reads files that it is given by a way of its own
                importlib.import_module(".".join(case.path.relative_to(ROOT).with_suffix("").parts))
            code = run_pytest(files, plugin, scratch)
        return 4 if plugin.compiles else 1 if plugin.failed or code in {1, 2, 3} else 0

    return forked(work, cpu=seconds + 20)


@contextmanager
def _imported_instead(case: Case) -> Iterator[None]:
    """While it lasts, the file of a case is imported with the changed code."""
    loader, path = importlib.machinery.SourceFileLoader, os.path.realpath(case.path)
    unchanged = loader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if os.path.realpath(self.get_filename(name)) == path:
            return case.code()
        return unchanged(self, name)

    loader.get_code = get_code  # type: ignore[method-assign]
    try:
        yield
    finally:
        loader.get_code = unchanged  # type: ignore[method-assign]

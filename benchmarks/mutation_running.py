"""Running tests against mutants, each in a process that is forked when everything is loaded.

Kernels come from the cache once; no netclust module beside them is imported in the first process. From it are forked

- one that runs all tests and notes what each one executes (`measured`);
- one that collects the tests, from which each mutant of a function is forked: the function's code is exchanged there
  and its tests are run, until one fails (`run_functions`);
- one for each mutant outside functions, which imports the changed module as it would the file (`run_module`).

So a mutant of a function costs what its tests cost, and no file of the tree is ever changed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import inspect
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
REFUSED = "refused"
"""The code could not be exchanged in a function that exists: the module has to be imported again."""
COMPILES = "compiles"
"""A kernel would be compiled for other types: that takes up to a minute, and kernels are not what is tested."""
_CODES = {0: SURVIVED, 1: KILLED, 3: REFUSED, 4: COMPILES}

QUICK = "not long and not system and not peers and not docs"
LONGEST_TEST = 8.0
"""Seconds of computing; a test that takes longer while it is watched, which takes some times longer, is left out."""

TESTS_SECONDS = 12.0
"""Tests are run against a mutant up to this sum of seconds, as they were measured; a survivor costs as much."""

OWN_SECONDS = 6.0

LONGEST_WAIT = 12.0
"""Seconds in which a mutant does nothing but wait: more than any test of the quick tier waits."""

LONGEST_RUN = 180.0
"""Seconds, whatever it does: other programs may compute here as well."""

_MEMORY = 6 << 30  # a mutant may allocate without end


@dataclass(frozen=True)
class Measured:
    """One test: its seconds and what it executes, as `path:line`."""

    seconds: float
    lines: frozenset[str]


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


def warm_up() -> int:
    """Import the kernels and load all that the cache has of them; how many that were."""
    import netclust.kernels

    loaded = 0
    for found in pkgutil.iter_modules(netclust.kernels.__path__, "netclust.kernels."):
        module = importlib.import_module(found.name)
        for dispatcher in vars(module).values():
            kept = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
            if kept is None or getattr(dispatcher, "__module__", "") != found.name:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for signature, *_ in kept._load_index():
                    dispatcher.compile(signature)
                    loaded += 1
    for name in (
        "hypothesis",
        "numpy.random",
        "river",
        "river.drift",
        "safetensors.numpy",
        "sqlite3",
        "starlette.routing",
    ):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    return loaded


# --- processes


def _forked(work: Callable[[], int], *, cpu: float | None = None, output: Path | None = None) -> str:
    """Run in a child in a process group of its own; the outcome. `cpu`: seconds that it may compute."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            sink = os.open(output or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for standard in (1, 2):
                os.dup2(sink, standard)
            if cpu is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    handle = os.pidfd_open(pid)
    try:
        ended = _ends(pid, handle, patient=cpu is None)
        if ended:
            status = os.waitpid(pid, 0)[1]
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # also what the child has started
        if not ended:
            os.waitpid(pid, 0)
            return TIMEOUT
    finally:
        os.close(handle)
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL} else KILLED
    return _CODES.get(os.WEXITSTATUS(status), KILLED)


def _ends(pid: int, handle: int, *, patient: bool) -> bool:
    """Wait for a process to end. False: it only waits, and not for the processor. Limits of computing are its own."""
    idle = used = 0.0
    began = time.monotonic()
    while not select.select([handle], [], [], 1.0)[0]:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        waits = times[0] == "S" and now - used < 0.02
        idle, used = idle + 1.0 if waits else 0.0, now
        if not patient and (idle > LONGEST_WAIT or time.monotonic() - began > LONGEST_RUN):
            return False
    return True


def _pytest(arguments: Sequence[str], plugin: object, scratch: str) -> int:
    """Run pytest in this process, without what the tests of mutants do not need."""
    from hypothesis import Phase, settings

    # What is found is not made smaller: that a test fails is enough.
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("netclust-mutants", deadline=None, database=None, phases=phases)
    options = ["-q", "--tb=no", "-m", QUICK, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before the fork
    options += ["--hypothesis-seed=1", f"--basetemp={scratch}/{os.getpid()}", "-o", "tmp_path_retention_policy=none"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


class _Quick:
    """What all runs share: the profile of hypothesis, once conftest has set its own."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        from hypothesis import settings

        settings.load_profile("netclust-mutants")


@contextmanager
def _compilations(begins: Callable[[], None], ended: Callable[[float], None]) -> Iterator[None]:
    """While it lasts, tell when kernels are compiled that the cache does not have, and how long that took."""
    from numba.core.dispatcher import _FunctionCompiler

    unchanged = _FunctionCompiler.compile

    def compile_it(self: Any, *given: Any) -> Any:
        begins()
        began = time.process_time()
        try:
            return unchanged(self, *given)
        finally:
            ended(time.process_time() - began)

    _FunctionCompiler.compile = compile_it
    try:
        yield
    finally:
        _FunctionCompiler.compile = unchanged


# --- what tests execute


class _TooLong(BaseException):
    """Ends a test; what tests catch is not this."""


class _Measuring(_Quick):
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
            raise _TooLong
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
        with tempfile.TemporaryDirectory() as scratch, _compilations(lambda: None, plugin.compiled):
            code = _pytest(arguments, plugin, scratch)
        if code in {0, 1}:
            into.write_text(json.dumps({"tests": plugin.found, "left_out": plugin.left_out}))
        return code

    _forked(work, output=into.with_suffix(".log"))
    if not into.is_file():
        raise SystemExit(f"the tests could not be measured, see {into.with_suffix('.log')}")


def read_measured(path: Path) -> dict[str, Measured]:
    """What `measure` has written."""
    tests = json.loads(path.read_text())["tests"]
    return {name: Measured(seconds, frozenset(lines)) for name, (seconds, lines) in tests.items()}


# --- mutants


class _Failing(_Quick):
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
            with _compilations(self._refuse, lambda _: None):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.compiles:
                return 4
            if self.failed:
                self.note(item.nodeid)
                return 1
        return 0

    def _refuse(self) -> None:
        self.compiles = True
        raise _TooLong

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
            outcome = _forked(partial(self._child, case, tests, functions), cpu=seconds)
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
    for thing in gc.get_objects():  # what was remembered on the way, a mutant shall make again
        if isinstance(thing, _lru_cache_wrapper) and getattr(thing, "__module__", "").startswith("netclust"):
            thing.cache_clear()


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
            return _pytest(arguments, _Forking(cases, report, scratch), scratch)

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
        with _imported_instead(case), tempfile.TemporaryDirectory() as scratch:
            code = _pytest(files, plugin, scratch)
        return 4 if plugin.compiles else 1 if plugin.failed or code in {1, 2, 3} else 0

    return _forked(work, cpu=seconds + 20)


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

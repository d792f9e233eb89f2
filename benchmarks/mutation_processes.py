"""Processes for mutation testing: forked when everything is loaded, limited in what they may compute, told how to end.

Kernels come from the cache once; no netclust module beside them is imported in the first process.
"""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import pytest

KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
REFUSED = "refused"
"""The code could not be exchanged in a function that exists: the module has to be imported again."""
COMPILES = "compiles"
"""A kernel would be compiled for other types: that takes up to a minute, and kernels are not what is tested."""
_CODES = {0: SURVIVED, 1: KILLED, 3: REFUSED, 4: COMPILES}

QUICK = "not long and not system and not peers and not docs"

LONGEST_WAIT = 12.0
"""Seconds in which a mutant does nothing but wait: more than any test of the quick tier waits."""

LONGEST_RUN = 180.0
"""Seconds, whatever it does: other programs may compute here as well."""

_MEMORY = 6 << 30  # a mutant may allocate without end


def warm_up() -> int:
    """Import the kernels and load all that the cache has of them; return how many that were."""
    import netclust.kernels
    from netclust.kernels.digests import digest
    from netclust.kernels.jit import CACHE_FOLDER, Kernel

    loaded = 0
    for found in pkgutil.walk_packages(netclust.kernels.__path__, "netclust.kernels."):
        module = importlib.import_module(found.name)
        for kernel in vars(module).values():
            if CACHE_FOLDER is None or not isinstance(kernel, Kernel) or kernel.__module__ != found.name:
                continue
            name = f"{kernel.__module__}.{kernel.__qualname__}-{digest(kernel)[:20]}-*"
            for path in CACHE_FOLDER.glob(name):
                signature, _ = pickle.loads(path.read_bytes())  # noqa: S301 (our own kernel cache)
                kernel.compile(signature)
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


def forget() -> None:
    """Clear what functions of netclust remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith("netclust"):
            for thing in list(vars(module).values()):
                if isinstance(thing, _lru_cache_wrapper):
                    thing.cache_clear()


class TooLong(BaseException):
    """Ends a test; what tests catch is not this."""


def forked(work: Callable[[], int], *, cpu: float | None = None, output: Path | None = None) -> str:
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


def run_pytest(arguments: Sequence[str], plugin: object, scratch: str) -> int:
    """Run pytest in this process, without what the tests of mutants do not need."""
    from hypothesis import Phase, settings

    # What is found is not made smaller: that a test fails is enough.
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("netclust-mutants", deadline=None, database=None, phases=phases)
    options = ["-q", "--tb=no", "-m", QUICK, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before the fork
    options += ["--hypothesis-seed=1", f"--basetemp={scratch}/{os.getpid()}", "-o", "tmp_path_retention_policy=none"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


class Quick:
    """What all runs share: the profile of hypothesis, once conftest has set its own."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        from hypothesis import settings

        settings.load_profile("netclust-mutants")


@contextmanager
def compilations(begins: Callable[[], None], ended: Callable[[float], None]) -> Iterator[None]:
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

"""A command run in this process, as the tests of the command line share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from netclust.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process."""

    def run_it(*args: object) -> Ran:
        capsys.readouterr()
        code: Any = 0
        try:
            main([str(a) for a in args])
        except SystemExit as stop:
            code = stop.code or 0
        return Ran(int(code), *capsys.readouterr())

    return run_it

"""Programs that check what is deployed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def run_tool(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program that may not be installed; its output, or a failure that shows it."""
    program = shutil.which(str(command[0]), path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:]], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr

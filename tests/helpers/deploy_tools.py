"""Programs that check what is deployed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from needed import need_program


def run_tool(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program that may not be installed; its output, or a failure that shows it."""
    program = need_program(str(command[0]))
    done = subprocess.run([program, *command[1:]], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr

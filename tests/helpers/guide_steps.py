"""The commands and snippets of a page, in the order in which a reader meets them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from installed_wheel import Installed

_BLOCK = re.compile(r"^```(console|python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of the shell, or a snippet of Python."""

    kind: str
    code: str


def steps(text: str) -> list[Step]:
    """Return what a page says to type: lines after `$` in console blocks, and whole blocks of sh and Python."""
    found: list[Step] = []
    for kind, block in _BLOCK.findall(text):
        if kind == "console":
            found += [Step("sh", command) for command in _COMMAND.findall(block)]
        else:
            found.append(Step(kind, block))
    return found


def run_step(step: Step, installed: Installed, folder: Path) -> str:
    """Run a step in a folder with the installed wheel; return what it prints."""
    if step.kind == "sh":
        return installed.run("bash", "-euo", "pipefail", "-c", step.code, cwd=folder).stdout
    snippet = folder / "snippet.py"
    snippet.write_text(step.code)
    return installed.run("python", snippet.name, cwd=folder).stdout

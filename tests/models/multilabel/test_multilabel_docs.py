"""What the guide to multi-label models shows must run as it is shown."""

from __future__ import annotations

import csv
import importlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docs

importlib.import_module("netclust.models.multilabel.commands")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "multilabel.md"


def test_commands_and_lines_of_the_guide_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    made, used = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(made, "multilabel.md", "exec"), {})  # noqa: S102 (our own file)
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        done = run(*shlex.split(command))
        assert done.code == 0, (command, done.err)
    with open("found.csv", newline="") as file:
        found = list(csv.DictReader(file))
    with open("new.csv", newline="") as file:
        truth = list(csv.DictReader(file))
    names = ["is scan", "is theft", "is guess"]
    right = sum(a[name] == b[name] for a, b in zip(found, truth, strict=True) for name in names)
    assert right > 0.9 * 3 * len(truth)
    exec(compile(used, "multilabel.md", "exec"), {})  # noqa: S102 (our own file)
    shown = capsys.readouterr().out
    assert float(re.findall(r"all labels right: ([\d.]+)", shown)[0]) > 0.8

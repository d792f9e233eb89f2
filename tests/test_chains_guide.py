"""What the guide to chains shows must run as it is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from netclust.cli import main

pytestmark = pytest.mark.docs

GUIDE = Path(__file__).parent.parent / "docs" / "chains.md"


def test_a_command_or_line_of_the_guide_to_chains_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(command))
        assert not stop.value.code, command
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "chains.md", "exec"), {})  # noqa: S102 (our own file)
    assert "gap" in capsys.readouterr().out

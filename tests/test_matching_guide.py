"""What the guide to matchings shows must run as it is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from netclust.cli import main

pytestmark = pytest.mark.docs

GUIDE = Path(__file__).parent.parent / "docs" / "matching.md"


def test_a_command_or_line_of_the_guide_to_matchings_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text().replace("--records 12000", "--records 6000")
    made, used = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(made, "matching.md", "exec"), {})  # noqa: S102 (our own file)
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 14
    for command in commands:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(command))
        assert not stop.value.code, command
    exec(compile(used, "matching.md", "exec"), {})  # noqa: S102 (our own file)
    assert "found again" in capsys.readouterr().out
    assert Path("matched.csv").stat().st_size > 0

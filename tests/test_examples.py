"""README and documents: short, whole, without broken links, and in step with the code. test_guides.py runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.cli import main
from netclust.models.network.params import TrainParams
from netclust.records.schema import load_schema, parse_schema

ROOT = Path(__file__).parent.parent


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert len(text.encode()) <= 7 * 1024


def test_the_alert_in_the_readme_is_the_one_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    main_ok(["demo"])
    real = capsys.readouterr().out.splitlines()
    (section,) = re.findall(r"^## Sixty seconds\n(.*?)^## ", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    block = section.split("```")[1].splitlines()[1:]
    shown = [line for line in block if line and not line.startswith(("$", "..."))]
    assert len(shown) == 6
    assert [line for line in real if line in shown] == shown


@pytest.mark.docs
def test_the_documentation_builds_without_a_broken_link(tmp_path: Path) -> None:
    """In strict mode mkdocs fails on any link, anchor or page of the navigation that leads nowhere."""
    build = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run([sys.executable, *build], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    commands = (tmp_path / "site" / "cli" / "index.html").read_text()
    assert all(name in commands for name in ("netclust explain", "--false-alarm-rate", "netclust reproduce table-4.1"))
    assert "LinkDetector" in (tmp_path / "site" / "api" / "index.html").read_text()


def main_ok(args: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(args)
    assert stopped.value.code == 0


def test_the_schema_in_the_guide_is_one() -> None:
    text = (ROOT / "docs" / "schema.md").read_text()
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert parse_schema(toml).name == load_schema(ROOT / "examples" / "doors.toml").name


def test_every_parameter_is_in_its_guide_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", (ROOT / "docs" / "parameters.md").read_text(), re.MULTILINE))
    shown = {name: default.strip('`"') for name, default in rows.items()}
    actual = {name: getattr(TrainParams(), name) for name in TrainParams.__struct_fields__}
    assert shown == {name: "none" if value is None else str(value) for name, value in actual.items()}


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if target == "cli.md":  # made when the documentation is built
                continue
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_file_of_the_repository_names_a_machine_or_a_registry() -> None:
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False).stdout
    for name in files.split():
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".sh", ".json", ""}:
            text = path.read_text(errors="replace")
            assert not re.search(r"(?<![\w.])/(?:work|farm|home|root)/|pypi\.org|files\.pythonhosted", text), name

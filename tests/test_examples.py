"""What README and documents show must run as it is shown."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.cli import main
from netclust.models.params import TrainParams
from netclust.schema import load_schema, parse_schema
from netclust.stream.store import Store

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent


def test_the_second_record_format_needs_only_its_schema_file(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "doors.py"))["main"]()
    printed = capsys.readouterr().out
    judged = [float(share) for share in re.findall(r"([\d.]+)% judged rightly", printed)]
    assert min(judged) > 85
    assert "night_visit" in printed


def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    main_ok(["simulate", "records", "-o", "demo/past.txt", "--records", "3000", "--seed", "1"])
    main_ok(["simulate", "records", "-o", "demo/today.txt", "--records", "2000", "--seed", "2", "--day", "1"])
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code
    exec(compile(code[0], "README.md", "exec"), {})  # noqa: S102 (our own file)
    assert "anomalous" in capsys.readouterr().out
    assert Path("demo/state.safetensors").stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("operator", r"[0-9]+ anomalous with the answer, [0-9]+ without\nrestored: 8000 records"),
        ("engineer", r"nearest normal .*±"),
        ("researcher", r"labels 100 records late: AUC 0\.9"),
    ],
)
def test_an_example_for_an_audience_does_not_run(name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert re.search(says, capsys.readouterr().out)


def test_a_command_of_the_tutorial_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text().replace("\\\n", " ")
    # One process is enough for a second: others would begin with importing everything again.
    text = text.replace("--budget 1m", "--budget 1s --jobs 1")
    text = text.replace("--records 20000", "--records 6000").replace("--records 10000", "--records 3000")
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 10
    for command in commands:
        main_ok(shlex.split(command))
    assert Path("tuned.safetensors").exists()


def test_a_command_or_line_of_the_guide_to_captures_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "captures.md").read_text().replace("--hours 1 ", "--hours 0.3 ")
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        main_ok(shlex.split(command))
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "captures.md", "exec"), {})  # noqa: S102 (our own file)
    assert "connections began" in capsys.readouterr().out
    assert Path("found.jsonl").stat().st_size > 0


def test_a_command_or_line_of_the_guide_to_clustering_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "clustering.md").read_text()
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 9
    for command in commands:
        main_ok(shlex.split(command))
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(code, "clustering.md", "exec"), {})  # noqa: S102 (our own file)
    assert "CorrelationClusterer 3 clusters, score 1.0" in capsys.readouterr().out
    assert Path("found-k.csv").stat().st_size > 0


def test_a_command_or_line_of_the_guide_to_coreference_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "coreference.md").read_text()
    commands = re.findall(r"^\$ (?:netclust (.*?)|echo '(.*?)' > (\S+))(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 7
    for command, line, file in commands:
        if file:
            Path(file).write_text(line + "\n")
        else:
            main_ok(shlex.split(command))
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "coreference.md", "exec"), {})  # noqa: S102 (our own file)
    assert "MELA" in capsys.readouterr().out
    assert Path("found.conll").stat().st_size > 0


def test_a_command_or_line_of_the_guide_to_ranking_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "ranking.md").read_text()
    made, used = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(made, "ranking.md", "exec"), {})  # noqa: S102 (our own file)
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", text.partition("## In Python")[0], re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        main_ok(shlex.split(command))
    exec(compile(used, "ranking.md", "exec"), {})  # noqa: S102 (our own file)
    assert "JointRanker" in capsys.readouterr().out


def test_a_command_of_the_daemons_page_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    Path("deploy").symlink_to(ROOT / "deploy")
    simulated = "--start 2024-01-02T09:00:00Z --hours 0.5 --seed 2 --attacks all --campaigns-per-hour 20"
    main_ok(shlex.split(f"simulate capture -o demo/today.pcap {simulated}"))
    commands = re.findall(r"^\$ netclust (.*?)(?:\s+#.*)?$", (ROOT / "docs" / "daemon.md").read_text(), re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        if " ALERT " in command:
            with Store("demo/state/netclust.db") as store:
                command = command.replace("ALERT", store.alerts()[0].id)
        main_ok(shlex.split(command))
    assert Path("demo/watched.jsonl").stat().st_size > 0


def test_the_documentation_has_a_broken_link(tmp_path: Path) -> None:
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

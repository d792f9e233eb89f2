"""What the guides show must run as it is shown: with the installed wheel, outside of the checkout."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from guide_steps import Step, run_step, steps
from installed_wheel import ROOT, Installed

from netclust.cli.app import load_commands

OFFICE = "netclust simulate capture -o demo/today.pcap --start 2024-01-02T09:00:00Z --hours 0.5 --seed 2 --attacks all"
PAST = "netclust simulate records -o past.txt --records 3000 --seed 1"
TODAY = "netclust simulate records -o today.txt --records 2000 --seed 2 --day 1"
NOT_HERE = r"^(pip|make|sudo|docker|redis|\. |curl)|FILE\.pcap|WHEEL|--install-completion"


@dataclass(frozen=True)
class Page:
    """How a page is run: smaller (`instead`), without what needs more than this machine, and what it should say."""

    name: str
    least: int  # steps
    says: str = ""
    before: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    without: str = NOT_HERE
    files: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    first: str = ""  # names that the page's Python takes from the reader


ZEEK_LOG = ROOT / "tests" / "helpers" / "streams" / "write_zeek_log.py"


def zeek_log(day: str) -> tuple[str, str]:
    """Commands that make the labelled Zeek log of a simulated day, such as a reader would have."""
    seed = len(day)
    return (
        f"netclust simulate capture -o {day}.pcap --labels {day}.csv --hours 0.3 --seed {seed} --campaigns-per-hour 10",
        f"python {shlex.quote(str(ZEEK_LOG))} {day}.pcap {day}.csv {day}.conn.log.labeled",
    )


FRAMES = """
import numpy as np, pandas
rng = np.random.default_rng(0)
frame = pandas.DataFrame({"bytes": rng.lognormal(3, 1, 400), "state": rng.choice(["SF", "S0"], 400)})
labels = ["normal" if state == "SF" else "probe" for state in frame["state"]]
tomorrow = frame[:50]
X, y, Z = frame[["bytes"]].to_numpy(), labels, frame[["bytes"]].to_numpy()
from river import datasets
dataset = datasets.Shuttle().take(300)
"""

PAGES = [
    Page("README.md", 2, r"anomalous\nRecord 0:\d+ is", (PAST, TODAY)),
    Page("docs/index.md", 1, "Together they are one alert"),
    Page("docs/demo.md", 1, "Together they are one alert", without=NOT_HERE + "|explain"),
    Page(
        "docs/using.md", 20, "records, .*anomalous",
        instead=(
            ("KDDTrain+.txt.xz", "demo/past.txt"), ("KDDTest+.txt.xz", "demo/today.txt"),
            ("--budget 2m", "--budget 1s --jobs 1"),
            ("--records 40000", "--records 8000"), ("--records 20000", "--records 3000"),
            ("-o demo/quiet.txt", "-o demo/quiet.txt --records 3000"),
        ),
        before=(*zeek_log("past"), *zeek_log("today")),
        made=("demo/found.jsonl", "demo/best.toml", "demo/state.safetensors", "demo/today-conn.csv"),
    ),
    Page(
        "docs/tutorial.md", 11,
        instead=(
            ("--budget 1m", "--budget 1s --jobs 1"), ("--records 20000", "--records 6000"),
            ("--records 10000", "--records 3000"),
        ),
        made=("tuned.safetensors",),
    ),
    Page("docs/captures.md", 7, "connections began", instead=(("--hours 1 ", "--hours 0.3 "),), made=("found.jsonl",)),
    Page(
        "docs/daemon.md", 8, before=("mkdir demo", f"{OFFICE} --campaigns-per-hour 20"), files=("deploy",),
        made=("demo/watched.jsonl",),
    ),
    Page("docs/schema.md", 3, "judged rightly", files=("examples",), made=("doors.safetensors",)),
    Page("docs/clustering.md", 11, r"CorrelationClusterer 3 clusters, score 1\.0", made=("found-k.csv",)),
    Page("docs/coreference.md", 8, "MELA", made=("found.conll",)),
    Page("docs/ranking.md", 6, "JointRanker"),
    Page("docs/chains.md", 8, "gap"),
    Page(
        "docs/matching.md", 16, "found again", instead=(("--records 12000", "--records 6000"),), made=("matched.csv",),
    ),
    Page("docs/multilabel.md", 8, made=("found.csv",)),
    Page("docs/grammar.md", 9, instead=(("lexical-aux --C 100", "lexical-aux --C 1"),)),
    Page("docs/growth.md", 2, "questions about", without=NOT_HERE + "|reproduce|benchmarks|^make"),
    Page("docs/learners.md", 2, "false alarms"),
    Page("docs/approximate-inference.md", 1, "exact"),
    Page("docs/ecosystem.md", 3, "anomalous", first=FRAMES),
    Page("docs/supervised.md", 8, r"Mr\. Smith", made=("demo/clusters.csv", "demo/note.html")),
]  # fmt: skip

ELSEWHERE = {
    "docs/attractive.md": "tests/models/attractive/test_attractive_task.py",
    "docs/bus.md": "needs a broker that is stopped by hand; the same story: tests/stream/daemon/test_bus_daemon.py",
    "docs/cluster.md": "needs a broker; the same story: tests/stream/sharding/test_dataflow.py",
    "docs/console.md": "needs a running daemon: tests/stream/console/test_console_api.py",
    "docs/explanations.md": "a part of the tutorial, and lines that the README has whole",
}
"""Pages that are run by other tests, or not at all, and why."""


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_command_and_snippet_of_a_guide_runs(page: Page, installed: Installed, tmp_path: Path) -> None:
    text = (ROOT / page.name).read_text()
    for shown, small in page.instead:
        assert shown in text, f"{page.name} no longer has {shown}"
        text = text.replace(shown, small)
    for name in page.files:
        shutil.copytree(ROOT / name, tmp_path / name)
    for command in page.before:
        run_step(Step("sh", command), installed, tmp_path)
    todo = [step for step in steps(text) if step.kind == "python" or not re.search(page.without, step.code)]
    assert len(todo) >= page.least
    printed, python = [], page.first
    for step in todo:
        if step.kind == "python":
            python += step.code + "\n"
            step = Step("python", python)  # a later snippet may use what an earlier one made
        elif " ALERT " in step.code:
            step = Step("sh", step.code.replace("ALERT", an_alert(installed, tmp_path)))
        printed.append(run_step(step, installed, tmp_path))
    assert re.search(page.says, "\n".join(printed))
    for name in page.made:
        assert (tmp_path / name).stat().st_size > 0


def an_alert(installed: Installed, folder: Path) -> str:
    """The first alert of the state that a guide has made."""
    shown = installed.run(*shlex.split("netclust alerts --state-dir demo/state --state all"), cwd=folder).stdout
    return re.findall(r"\ba-[0-9a-f]{12}\b", shown)[0]


def test_every_page_with_commands_or_snippets_is_run_or_says_why_not() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    shown = {str(path.relative_to(ROOT)) for path in pages if steps(path.read_text())}
    written_for_developers = {"docs/detection.md", "docs/model-cards/index.md", "CONTRIBUTING.md"}
    assert shown - written_for_developers - set(ELSEWHERE) <= {page.name for page in PAGES}


def shown_commands() -> list[tuple[str, list[str]]]:
    """Every netclust command of every page, in words, with its page."""
    found = []
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]:
        text = path.read_text().replace("\\\n", " ")
        blocks = "\n".join(re.findall(r"^```(?:console|sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        lines = re.findall(r"^(?:\$ )?(?:sudo )?(netclust [a-z]+ .*)$", blocks, re.MULTILINE)
        for command in lines + re.findall(r"`(netclust [a-z][^`]*)`", text):
            first = re.split(r"\s[|&;>#]|\s\[|\.\.\.|…", command)[0]
            found.append((path.name, first.split()[1:]))
    return found


def test_every_command_and_option_that_a_page_names_exists() -> None:
    wrong = []
    for page, words in shown_commands():
        command = typer.main.get_command(load_commands())
        while words and words[0] in getattr(command, "commands", {}):
            command, words = command.commands[words[0]], words[1:]  # type: ignore[attr-defined]
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {
            "-h",
            "--help",
        }
        group = bool(getattr(command, "commands", {})) and bool(words) and re.fullmatch(r"[a-z-]+", words[0])
        unknown = [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
        if group or unknown:
            wrong.append((page, command.name, words[0] if group else unknown))
    assert wrong == []


@pytest.mark.docs
def test_every_benchmark_that_a_guide_names_loads_with_the_installed_wheel(
    installed: Installed, tmp_path: Path
) -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]
    named = sorted({name for page in pages for name in re.findall(r"python (benchmarks/\w+\.py)", page.read_text())})
    assert len(named) > 10
    for folder in ("benchmarks", "tests"):  # those that start daemons do it as the tests do
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("results", "__pycache__"))
    load = "import runpy, sys; sys.path.insert(0, 'benchmarks'); [runpy.run_path(p) for p in sys.argv[1:]]"
    installed.run("python", "-c", load, *named, cwd=tmp_path)


EXAMPLES = {
    "answering": r"[0-9]+ anomalous with the answer, [0-9]+ without\nrestored: 8000 records",
    "engineer": r"nearest normal .*±",
    "researcher": r"labels 100 records late: AUC 0\.9",
}


@pytest.mark.docs
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_for_an_audience_runs(name: str, installed: Installed, tmp_path: Path) -> None:
    printed = run_example(name, installed, tmp_path)
    assert re.search(EXAMPLES[name], printed)


def test_the_second_record_format_needs_only_its_schema_file(installed: Installed, tmp_path: Path) -> None:
    printed = run_example("doors", installed, tmp_path)
    judged = [float(share) for share in re.findall(r"([\d.]+)% judged rightly", printed)]
    assert min(judged) > 85
    assert "night_visit" in printed


def run_example(name: str, installed: Installed, folder: Path) -> str:
    """Run a file of examples/ from a folder that has nothing but the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    return installed.run("python", f"examples/{name}.py", cwd=folder).stdout


def test_no_example_hides_a_module_of_python() -> None:
    assert not {path.stem for path in (ROOT / "examples").glob("*.py")} & set(sys.stdlib_module_names)

"""Help, completion, and what a command says before it writes much."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from netclust.cli.app import load_commands
from netclust.cli.panels import PANELS
from netclust.datasets.simulators.capture_simulator import expected_capture_bytes, simulate_capture
from netclust.errors import InputError, MissingExtraError
from netclust.foundation.optional import require_optional


def commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and group, by its words."""
    inside = getattr(command, "commands", {})
    return [path, *(found for name, each in inside.items() for found in commands(each, (*path, name)))]


@pytest.mark.parametrize("words", commands(typer.main.get_command(load_commands())), ids=" ".join)
def test_a_short_option_shows_the_help_of_every_command(run: Callable[..., Any], words: tuple[str, ...]) -> None:
    ran = run(*words, "-h")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: {' '.join(('netclust', *words))} ")
    assert "-h, --help" in ran.out


@pytest.mark.parametrize("name", ["detect", "flows", "info", "warmup", "watch", "run", "alerts", "label", "suppress"])
def test_a_command_beside_traffic_is_found_without_the_others(name: str) -> None:
    code = (
        "import sys, typer; from netclust.cli.app import load_commands; "
        f"assert {name!r} in typer.main.get_command(load_commands({name!r})).commands; "
        "assert 'netclust.models.clustering.commands' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Completion


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers at the end of a line, with the script that netclust installs."""
    home = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    install = [sys.executable, "-m", "netclust", "--show-completion", "bash"]
    environment = os.environ | home | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(install, env=environment, capture_output=True, text=True, check=True).stdout
    words = line.split(" ")
    typed = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _netclust_completion netclust; echo "${{COMPREPLY[@]}}"'
    bash = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], env=environment, capture_output=True, text=True, check=True
    )
    return bash.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing: apt-get install bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("netclust wat", ["watch"]),
        ("netclust simulate rec", ["records"]),
        ("netclust simulate capture --sn", ["--snaplen"]),
        ("netclust nothing-like-this", []),
    ],
)
def test_bash_completes_commands_and_options(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == offered


# A capture that is large


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hours": 0.02, "hosts": 8}, "x.pcap: 0.02 h of 8 hosts, about 1 MB\n"),
        (
            {"hours": 0.02, "hosts": 8, "output": "x.pcap.gz"},
            "x.pcap.gz: 0.02 h of 8 hosts, about 1 MB, before packing\n",
        ),
    ],
)
def test_simulating_says_first_how_much_it_will_write(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    output = options.pop("output", "x.pcap")
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    ran = run("simulate", "capture", "-o", output, "--attacks", "none", *given)
    assert ran.err.startswith(says)


def test_a_capture_is_small_unless_more_is_asked_for() -> None:
    default = simulate_capture.__kwdefaults__
    assert default is not None
    assert expected_capture_bytes(default["hours"], default["hosts"], default["scale"], default["snaplen"]) < 20_000_000


@pytest.mark.parametrize(
    "options",
    [
        {"hours": 0.25, "hosts": 12},
        {"hours": 0.25, "hosts": 40, "scale": 2.0},
        {"hours": 0.1, "hosts": 40, "snaplen": 0},
        {"hours": 1.0, "hosts": 20},
    ],
)
def test_the_announced_size_is_right_within_a_factor_of_three(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = {"scale": 1.0, "snaplen": 200} | options
    made = simulate_capture(tmp_path / "x.pcap", start="2024-01-03T10:00:00Z", **whole)
    expected = expected_capture_bytes(whole["hours"], whole["hosts"], whole["scale"], whole["snaplen"])
    assert expected / 3 < made.bytes < 3 * expected


# Extras


def test_a_missing_extra_is_bad_input_and_an_import_error() -> None:
    with pytest.raises(MissingExtraError) as found:
        require_optional("no_such_module.inside", "guessing", "offline")
    assert isinstance(found.value, InputError)
    assert isinstance(found.value, ImportError)
    assert (found.value.name, found.value.extra, found.value.exit_code) == ("no_such_module", "offline", 2)


@pytest.mark.parametrize(("python", "how"), [((3, 12, 1), "pip install"), ((3, 13, 0), "use Python 3.11 or 3.12")])
def test_a_library_without_wheels_for_this_python_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, python: tuple[int, int, int], how: str
) -> None:
    monkeypatch.setattr("sys.version_info", python)
    error = MissingExtraError("netclust shards", "bytewax", "cluster")
    assert how in str(error)


def test_a_missing_extra_survives_the_way_between_processes() -> None:
    error = MissingExtraError("the LP relaxation", "highspy", "offline")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert (str(again), again.name, again.extra) == (str(error), "highspy", "offline")


def test_every_command_stands_in_one_panel_of_the_help() -> None:
    command = typer.main.get_command(load_commands())
    listed = [name for names in PANELS.values() for name in names]
    assert sorted(listed) == sorted(command.commands)
    shown = subprocess.run(
        [sys.executable, "-m", "netclust", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert [line for line in shown.splitlines() if line.rstrip(":") in PANELS] == [f"{panel}:" for panel in PANELS]

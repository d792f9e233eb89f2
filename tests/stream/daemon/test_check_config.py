"""A configuration is checked before anything starts: what is wrong is named, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from netclust.errors import InputError
from netclust.stream.commands.run_daemon import run_daemon_check
from netclust.stream.config import parse_config
from netclust.stream.daemon.build import check_config, model_name

RENAMED = [
    ("alerts", "update_seconds", "reminder_interval", 7.0),
    ("daemon", "queue_seconds", "max_queue_age", 0.25),
    ("daemon", "stop_seconds", "shutdown_timeout", 9.0),
]
RECORDS = '[[source]]\nkind = "records"\npath = "-"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "source"),
        ('[[source]]\nkind = "live"\n', "interfaces"),
        ('[[source]]\nkind = "live"\ninterfaces = ["lo"]\npath = "x"\n', "not for a live source"),
        ('[[source]]\nkind = "records"\n', "path is missing"),
        ('[[source]]\nkind = "zeek"\npath = "-"\npromiscuous = true\n', "promiscuous is for a live source"),
        ('[[source]]\nkind = "zeek"\npath = "-"\n[model]\npath = "flow"\n', "conn or kdd"),
        ('[[source]]\nkind = "records"\npath = "-"\nname = "a b"\n', "letters, digits"),
        (f"{RECORDS}{RECORDS}", ""),
        (f"{RECORDS}[model]\npath = 'no/such/model'\n", "no such file"),
        (f"{RECORDS}[model]\nfalse_alarm_rate = 2.0\n", "false_alarm_rate"),
        (f"{RECORDS}[warmup]\nrecords = 100\nreferences = 90\n", "to calibrate with"),
        (f"{RECORDS}[window]\nreferent_window = -1\n", "referent_window"),
        (f"{RECORDS}[[suppress]]\nport = 80\n", "reason"),
        (f"{RECORDS}[[suppress]]\nreason = 'x'\nattribute = 'servic=http'\n", "no attribute 'servic'"),
        (f"{RECORDS}[[sink]]\nkind = 'webhook'\n", "url"),
        (f"{RECORDS}[[sink]]\nkind = 'jsonl'\npath = '/no/such/folder/x'\n", "no folder"),
        (f"{RECORDS}[http]\nlisten = '0.0.0.0:1'\n", "token_file"),
        (f"{RECORDS}[http]\ntls_cert = '/no/such/cert'\n", "cannot be read"),
        (f"{RECORDS}[daemon]\ncheckpoint_seconds = 0\n", "checkpoint_seconds"),
        (f"{RECORDS}[daemon]\nunknown = 0\n", "unknown"),
    ],
)
def test_a_mistake_is_found_before_the_start(text: str, why: str) -> None:
    if not why:  # two of a kind get names of their own
        assert [s.name for s in parse_config(text).sources] == ["records", "records-1"]
        return
    with pytest.raises(InputError, match=why):
        check_config(parse_config(text))


@pytest.mark.parametrize(("section", "old", "new", "value"), RENAMED)
def test_old_spellings_are_read_with_a_warning(section: str, old: str, new: str, value: float) -> None:
    before, after = (parse_config(f"{RECORDS}[{section}]\n{name} = {value}\n") for name in (old, new))
    assert getattr(getattr(before, section), new) == value
    assert before.old_spellings == (
        f"[{section}] {old} is now [{section}] {new}: rename it, the next release will refuse the old name",
    )
    assert after.old_spellings == ()
    assert msgspec.structs.replace(before, old_spellings=()) == after
    with pytest.raises(InputError, match=f"test: .{section}. {old} is the old name"):
        parse_config(f"{RECORDS}[{section}]\n{old} = 1\n{new} = 1\n", "test")


def test_the_old_name_of_sharding_is_read_with_a_warning() -> None:
    before, after = (parse_config(f"[{name}]\ninput = 'memory://a/b'\n") for name in ("cluster", "sharding"))
    assert before.sharding == after.sharding is not None
    assert "[sharding]: rename it" in before.old_spellings[0]


def test_a_file_cannot_bring_warnings_of_its_own() -> None:
    with pytest.raises(InputError, match="unknown field"):
        parse_config(f"old_spellings = ['x']\n{RECORDS}")


def test_check_config_names_old_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "netclust.toml"
    section, old, new, value = RENAMED[1]
    path.write_text(f"{RECORDS}[{section}]\n{old} = {value}\n")
    run_daemon_check(path)
    out, err = capsys.readouterr()
    assert f"{path}: good" in out
    assert f"{path}: [{section}] {old} is now [{section}] {new}" in err


def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(InputError, match="at least 16 characters"):
        check_config(parse_config(f"{RECORDS}[http]\ntoken_file = '{tmp_path}/token'\n"))


@pytest.mark.parametrize(
    ("kinds", "model"), [(["records"], "kdd"), (["live"], "flow"), (["capture"], "flow"), (["zeek", "capture"], "conn")]
)
def test_the_model_that_fits_the_sources_is_taken(kinds: list[str], model: str) -> None:
    sources = "".join(f'[[source]]\nkind = "{kind}"\npath = "-"\nname = "{kind}"\n' for kind in kinds)
    assert model_name(parse_config(sources)) == model

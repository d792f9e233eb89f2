"""The systemd unit, logrotate and the example configuration: accepted by the tools that will read them."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import msgspec
import pytest
from deploy_tools import run_tool

from netclust.stream.config import Config, load_config

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "netclust.service"
EXAMPLE = DEPLOY / "netclust.toml"


def settings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # The program need not be installed here.
    unit = tmp_path / "netclust.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/netclust", "/bin/true"))
    assert run_tool("systemd-analyze", "verify", unit).strip() == ""


def test_the_exposure_is_what_the_documentation_states() -> None:
    said = run_tool("systemd-analyze", "security", "--offline=true", "--no-pager", UNIT)
    found = re.search(r"exposure level for netclust.service: ([\d.]+)", said)
    if found is None:
        pytest.skip("this systemd does not rate a unit that is not installed")
    stated = re.search(r"exposure of ([\d.]+)", (DEPLOY / "README.md").read_text())
    assert stated is not None
    assert abs(float(found[1]) - float(stated[1])) < 0.5  # releases weigh differently
    assert float(found[1]) < 2.5


def test_the_configuration_is_checked_before_start_and_before_reload() -> None:
    unit = settings()
    check = "/usr/bin/netclust check-config /etc/netclust/netclust.toml"
    assert unit["ExecStartPre"] == [check]
    assert unit["ExecReload"] == [check, "/bin/kill -HUP $MAINPID"]
    assert unit["ExecStart"] == ["/usr/bin/netclust run --config /etc/netclust/netclust.toml"]
    assert unit["RestartPreventExitStatus"] == ["2"]


def test_no_right_but_one_and_no_memory_lock_that_would_stop_numba() -> None:
    unit = settings()
    assert unit["CapabilityBoundingSet"] == unit["AmbientCapabilities"] == ["CAP_NET_RAW"]
    assert unit["NoNewPrivileges"] == ["yes"]
    assert unit["ProtectSystem"] == ["strict"]
    assert unit["Type"] == ["notify"]
    assert "MemoryDenyWriteExecute" not in unit
    assert {"AF_PACKET", "AF_NETLINK"} <= set(unit["RestrictAddressFamilies"][0].split())


def test_systemd_does_not_kill_before_the_daemon_has_drained() -> None:
    assert float(settings()["TimeoutStopSec"][0]) > load_config(EXAMPLE).daemon.shutdown_timeout


def test_the_example_configuration_loads() -> None:
    config = load_config(EXAMPLE)
    assert [source.kind for source in config.sources] == ["live"]


def test_what_is_commented_out_loads_too(tmp_path: Path) -> None:
    # A commented line is either prose (a sentence) or TOML.
    kept = []
    for line in EXAMPLE.read_text().splitlines():
        bare = line.removeprefix("# ")
        is_toml = re.match(r"\[\[?\w+\]\]?$|\w+ = ", bare) is not None
        kept.append(bare if line.startswith("# ") and is_toml else line)
    whole = tmp_path / "whole.toml"
    whole.write_text("\n".join(kept))
    config = load_config(whole)
    assert {source.kind for source in config.sources} == {"live", "zeek", "records", "capture", "eve", "bus"}
    assert {sink.kind for sink in config.sinks} == {"jsonl", "alertmanager", "syslog", "webhook", "bus"}
    assert len(config.suppress) == 1


def test_no_option_is_missing_from_the_example() -> None:
    text = EXAMPLE.read_text()
    for section in msgspec.structs.fields(Config):
        if section.name == "old_spellings":  # no section: what the file was warned of
            continue
        inner = section.type
        if not (isinstance(inner, type) and issubclass(inner, msgspec.Struct)):
            inner = inner.__args__[0]
        assert re.search(rf"^(# )?\[\[?{section.encode_name}\]\]?$", text, re.MULTILINE), section.encode_name
        for option in msgspec.structs.fields(inner):
            assert re.search(rf"\b{option.encode_name}\b", text), f"{section.encode_name}.{option.encode_name}"


def test_values_in_the_example_are_the_defaults() -> None:
    config = load_config(EXAMPLE)
    for section in msgspec.structs.fields(Config):
        if section.name not in ("sources", "sinks", "suppress"):
            assert getattr(config, section.name) == section.default, section.name


def test_logrotate_accepts_the_file_and_has_logs_reopened(tmp_path: Path) -> None:
    text = (DEPLOY / "logrotate" / "netclust").read_text()
    assert "SIGUSR1" in text
    user = pwd.getpwuid(os.geteuid()).pw_name
    logs = tmp_path / "netclust"
    logs.mkdir(mode=0o755)
    (logs / "alerts.jsonl").write_text("{}\n")
    file = tmp_path / "logrotate.conf"
    file.write_text(text.replace("su netclust netclust", f"su {user} {user}").replace("/var/log/netclust", str(logs)))
    file.chmod(0o644)
    said = run_tool("logrotate", "-d", "-s", tmp_path / "status", file)
    assert "error" not in said.lower()
    assert "alerts.jsonl" in said
    assert f"{load_config(EXAMPLE).sinks[0].path}".startswith("/var/log/netclust/")

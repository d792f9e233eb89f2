"""What users have after installing: the wheel in an environment of its own, outside of any checkout."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from installed_wheel import ROOT, Installed, build, copy_of_checkout, install, needs_setuptools

from netclust.kernels import prebuilt


def test_the_installed_package_is_not_the_checkout(installed: Installed, tmp_path: Path) -> None:
    where = "import netclust, netclust.stream, netclust.models, netclust.datasets; print(netclust.__path__[0])"
    found = installed.run("python", "-c", where, cwd=tmp_path).stdout.strip()
    assert Path(found) == installed.package
    assert ROOT not in Path(found).parents


def test_the_wheel_has_every_module_and_data_file_once(installed: Installed) -> None:
    package = ROOT / "netclust"
    files = {
        str(Path(folder, name).relative_to(ROOT))
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if "__pycache__" not in folder and "prebuilt_files" not in folder
    }
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(names) == sorted(files)


@pytest.fixture(scope="module")
def shown(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `netclust demo` prints: in an empty folder that nobody may write to, with hardly any environment."""
    folder = tmp_path_factory.mktemp("demo")
    here, temporary = folder / "here", folder / "temporary"
    here.mkdir()
    temporary.mkdir()
    here.chmod(stat.S_IRUSR | stat.S_IXUSR)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # of compiled kernels
    few = {"PATH": os.defpath, "LANG": "C", "TMPDIR": str(temporary), "XDG_CACHE_HOME": cache}
    few |= {name: os.environ[name] for name in ("NUMBA_CACHE_DIR",) if name in os.environ}
    command = [str(installed.bin / "netclust"), "demo"]
    ran = subprocess.run(command, cwd=here, env=few, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [*here.iterdir(), *temporary.iterdir()] == []
    return ran.stdout


def test_the_demo_shows_one_alert_and_why_it_is_one(shown: str) -> None:
    assert 25 <= len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 88
    assert shown.isascii()
    assert "Together they are one alert" in shown
    assert len(re.findall(r"^   \w+ +[\w.]+ +[\w.]+ +\+\d\.\d\d", shown, re.MULTILINE)) == 4


def test_the_answer_of_the_demo_changes_what_is_reported_and_little_else(shown: str) -> None:
    now, of, before = map(int, re.findall(r"(\d+) of (\d+) connections of the same scan \((\d+) before", shown)[0])
    assert now < before / 4
    assert before > of * 0.8
    other, of = map(int, re.findall(r"(\d+) of (\d+) connections of an SSH password", shown)[0])
    assert other > of * 0.8


@pytest.mark.docs
def test_the_demo_keeps_its_traffic_if_asked(installed: Installed, tmp_path: Path) -> None:
    shown = installed.run("netclust", "demo", "--keep", "kept", cwd=tmp_path).stdout
    assert sorted(path.suffix for path in (tmp_path / "kept").iterdir()) == [".csv"] * 3 + [".pcap"] * 3
    (command,) = re.findall(r"^The simulated traffic is in kept: (netclust .*)$", shown, re.MULTILINE)
    (entity,) = re.findall(r"port_scan from ([\d.]+)", shown)
    assert f"port_scan  {entity}" in installed.run(*command.split(), cwd=tmp_path).stdout
    again = installed.run("netclust", "demo", "--keep", "kept", cwd=tmp_path, check=False)
    assert (again.returncode, again.stderr) == (
        2, "netclust: kept: cannot be made (File exists): name a folder that does not exist\n",
    )  # fmt: skip


# Kernels that come with the wheel

COUNTED = """
import sys
from numba.core import event
from netclust.kernels.jit import Kernel

class Compiled(event.Listener):
    def on_start(self, happened):
        if isinstance(happened.data["dispatcher"], Kernel):
            print("compiled", happened.data["dispatcher"], file=sys.stderr)

    def on_end(self, happened):
        pass

event.register("numba:compile", Compiled())
from netclust.cli import main
main(sys.argv[1:])
"""


@pytest.mark.system
def test_first_commands_compile_nothing_with_a_wheel_that_brings_its_kernels(tmp_path: Path) -> None:
    needs_setuptools()
    if not prebuilt.levels_here():
        pytest.skip("kernels are not built ahead for this kind of machine: Linux on x86-64-v3 or aarch64 is needed")
    source = copy_of_checkout(tmp_path / "source")
    made = install(build(source, tmp_path / "dist", kernels=True), tmp_path / "venv")
    shutil.rmtree(source)
    folders = {path.parent.name for path in made.package.glob("kernels/prebuilt_files/*/*.kernel")}
    assert folders == {prebuilt.folder_of(level).name for level in prebuilt.levels_here()}
    env = made.environment(NUMBA_CACHE_DIR=str(tmp_path / "cache"), NETCLUST_PREBUILT="")
    for arguments in (
        ("simulate", "records", "--records", "400", "-o", "records.txt"),
        ("simulate", "capture", "--hours", "0.05", "--hosts", "8", "--attacks", "all", "-o", "packets.pcap"),
        ("train", "network", "records.txt", "-o", "model"),
        ("detect", "--model", "model", "--input", "records.txt", "-o", "verdicts.jsonl"),
        ("explain", "--model", "model", "--test", "records.txt", "--record", "10"),
        ("watch", "records.txt"),
        ("watch", "packets.pcap"),
        ("demo",),
    ):
        command = [str(made.bin / "python"), "-c", COUNTED, *arguments]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "compiled" not in ran.stderr, (arguments, ran.stderr)


# Type checkers

RIGHT = """
import netclust

def alarms(path: str) -> int:
    model = netclust.train_network(netclust.read_table(path, netclust.load_schema("kdd")), seed=3)
    linker = netclust.Linker(model, netclust.LinkerConfig(referent_window=10))
    found = 0
    for table in netclust.RecordReader(path, model.encoding.schema):
        found += int(linker.process(model.encoding.encode(table, linker.labels)).anomalous.sum())
    return found
"""
WRONG = """
import netclust

netclust.train_network("x", 3)
netclust.no_such_name
"""


def test_a_strict_type_check_passes_right_use_and_refuses_wrong_use(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed.bin / "python")]
    command = [*mypy, "--cache-dir", str(tmp_path / "cache"), "right.py", "wrong.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "right.py" not in said
    assert 'wrong.py:4: error: Argument 1 to "train_network" has incompatible type "str"; expected "Table"' in said
    assert 'wrong.py:4: error: Argument 2 to "train_network" has incompatible type "int"' in said
    assert 'wrong.py:5: error: Module has no attribute "no_such_name"' in said


# Extras


def test_a_missing_extra_is_one_line_with_the_command_that_adds_it(installed: Installed, tmp_path: Path) -> None:
    code = "import sys; sys.modules['zstandard'] = None; from netclust.cli import main; main(['flows', 'x.pcap.zst'])"
    (tmp_path / "x.pcap.zst").write_bytes(bytes.fromhex("28b52ffd") + bytes(100))
    ran = installed.run("python", "-c", code, cwd=tmp_path, check=False)
    assert ran.returncode == 2
    assert ran.stderr == ("netclust: x.pcap.zst: a file packed by zstd needs zstandard: pip install 'netclust[zstd]'\n")


def test_the_command_for_an_extra_asks_no_package_index_for_netclust(installed: Installed, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", installed.bin / "python"]
    ran = installed.run(*pip, "install", "--no-index", "--dry-run", "netclust[zstd]", cwd=tmp_path)
    assert "Would install" not in ran.stdout


# The sdist


@pytest.mark.docs
def test_the_sdist_can_build_the_wheel_and_run_its_tests(tmp_path: Path) -> None:
    needs_setuptools()
    sdist = build(copy_of_checkout(tmp_path / "source"), tmp_path / "dist", "sdist")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    (tree,) = (tmp_path / "unpacked").iterdir()
    for name in ("tests", "docs", "examples", "deploy", "benchmarks", ".ci", "Makefile", "mkdocs.yml", "LICENSE"):
        assert (tree / name).exists(), name
    for name in ("datasets", "models", "stream"):
        assert (tree / "netclust" / name).readlink() == Path("..", name)
    made = install(build(tree, tmp_path / "wheels"), tmp_path / "venv")
    tests = [
        "tests/netclust/records/test_schema.py",
        "tests/stream/alerts/test_alert_book.py",
        "tests/netclust/records/test_opening.py",
    ]
    made.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=tree)


# Links of the long description


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_of_netclust", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def description(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(packed.read(name))


def text_of(metadata: email.message.Message) -> str:
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def test_the_long_description_is_the_readme_while_no_address_is_set(installed: Installed, setup: ModuleType) -> None:
    assert setup.base_url() == ""
    metadata = description(installed.wheel)
    assert text_of(metadata) == (ROOT / "README.md").read_text()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_all("Project-URL") is None


def test_an_address_makes_every_link_absolute(tmp_path: Path) -> None:
    needs_setuptools()
    source = copy_of_checkout(tmp_path / "source")
    settings = source / "pyproject.toml"
    settings.write_text(settings.read_text().replace('base-url = ""', 'base-url = "https://example.org/netclust/"'))
    metadata = description(build(source, tmp_path / "dist"))
    text = text_of(metadata)
    links = re.findall(r"\]\(([^)]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", text)
    assert len(links) > 10
    assert all("".join(link).startswith(("https://", "#")) for link in links)
    assert "https://example.org/netclust/docs/" in text
    assert "Source, https://example.org/netclust" in metadata.get_all("Project-URL", [])


def test_links_of_other_kinds_stay_as_they_are(setup: ModuleType) -> None:
    text = '[a](docs/a.md#b) [c](#d) [e](https://f.org) <img src="docs/g.svg" srcset="docs/h.png">'
    assert setup.long_description(text, "") == text
    assert setup.long_description(text, "https://x.org") == (
        "[a](https://x.org/docs/a.md#b) [c](#d) [e](https://f.org) "
        '<img src="https://x.org/docs/g.svg" srcset="https://x.org/docs/h.png">'
    )

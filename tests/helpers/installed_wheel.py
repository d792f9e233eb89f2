"""The wheel as users install it: built once per test run, and installed into a throw-away virtual environment.

The environment sees the libraries of the one that runs the tests, but not its editable netclust.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUPTOOLS = 77
LEFT_OUT = (".venv*", "prebuilt_files", ".git", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
MADE = {"build", "dist", "demo", "site"}
"""Folders that builds and demonstrations make at the top of the checkout."""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel."""

    folder: Path
    wheel: Path

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.folder / "bin"

    @property
    def package(self) -> Path:
        """Where netclust is in it."""
        (found,) = self.folder.glob("lib/python*/site-packages/netclust")
        return found

    def environment(self, **more: str) -> dict[str, str]:
        """The variables for its programs: nothing that could lead to the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return kept | {"PATH": path, "VIRTUAL_ENV": str(self.folder)} | more

    def run(self, *command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of it in a folder."""
        ran = subprocess.run(
            list(map(str, command)), cwd=cwd, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert not check or ran.returncode == 0, f"{command}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran


def copy_of_checkout(target: Path) -> Path:
    """Copy what belongs to the repository, so that a build leaves nothing in it."""
    patterns = shutil.ignore_patterns(*LEFT_OUT)

    def left_out(folder: str, names: list[str]) -> set[str]:
        return patterns(folder, names) | (MADE.intersection(names) if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)
    return target


def needs_setuptools() -> None:
    """Skip where the wheel cannot be built."""
    try:
        version = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    if int(version.partition(".")[0]) < SETUPTOOLS:
        pytest.skip(f"the wheel cannot be built: pip install 'setuptools>={SETUPTOOLS}'")


def build(source: Path, target: Path, what: str = "wheel", *, kernels: bool = False) -> Path:
    """Build a wheel (without kernels, unless asked for) or an sdist with the setuptools that is here; no network."""
    target.mkdir(parents=True, exist_ok=True)
    code = f"import build_backend; build_backend.build_{what}({str(target)!r})"
    env = os.environ | {"NETCLUST_PREBUILT": "" if kernels else "0"}
    built = subprocess.run(
        [sys.executable, "-c", code], cwd=source, env=env, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = target.glob("*.whl" if what == "wheel" else "*.tar.gz")
    return found


def install(wheel: Path, folder: Path) -> Installed:
    """Make the environment: the wheel first, then a way to the libraries that are here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    made = Installed(folder, wheel)
    # A folder named in a .pth file is searched, its own .pth files are not read: so the editable netclust is not seen.
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (made.package.parent / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    return made


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The installed wheel; all processes of a test run share one."""
    needs_setuptools()
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with open(shared / "installed-wheel.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, ready = shared / "installed-wheel", shared / "installed-wheel" / "ready"
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            wheel = build(copy_of_checkout(folder / "source"), folder / "dist")
            install(wheel, folder / "venv")
            shutil.rmtree(folder / "source")
            ready.touch()
        (wheel,) = (folder / "dist").glob("*.whl")
    return Installed(folder / "venv", wheel)

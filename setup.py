"""What pyproject.toml cannot say: links of the long description, symlinks in the sdist, kernels in the wheel.

`base-url` of `[tool.netclust]` is where the files of the repository are found on the web. While it is empty, links in
the README stay relative; once it is set, the long description of wheel and sdist has absolute ones.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
LINKED = ("datasets", "models", "stream")
"""Folders at the top that are parts of the package: netclust/NAME is a relative symlink to ../NAME."""
_MARKDOWN = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s]+)(?=\))")
_HTML = re.compile(r"(\b(?:src|srcset|href)=\")(?![a-z]+:|#)([^\"]+)(?=\")")


def base_url() -> str:
    """Return the setting, empty if there is no public address."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return str(settings["tool"]["netclust"]["base-url"])


def long_description(readme: str, base: str) -> str:
    """Return the README with absolute links, or as it is without a base."""
    if not base:
        return readme
    for links in (_MARKDOWN, _HTML):
        readme = links.sub(rf"\g<1>{base.rstrip('/')}/\g<2>", readme)
    return readme


def project_urls(base: str) -> dict[str, str]:
    """Return the addresses that the metadata names."""
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Source": ""}
    return {name: f"{base.rstrip('/')}/{page}".rstrip("/") for name, page in pages.items()} if base else {}


class SdistWithLinks(sdist):
    """An sdist with the layout of the repository: the folders once, and symlinks to them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Put links where setuptools copied what is behind them."""
        super().make_release_tree(base_dir, files)
        for name in LINKED:
            inside = Path(base_dir, "netclust", name)
            shutil.rmtree(inside)
            inside.symlink_to(Path("..", name))


class BuildWithKernels(build_py):
    """A build that compiles kernels for the Python that runs it, so that first starts need not."""

    def run(self) -> None:
        """Compile them before files are collected; without numba, the package is built without kernels."""
        there = importlib.util.find_spec("numba") is not None
        if there and not self.editable_mode and not os.environ.get("NETCLUST_PREBUILT"):
            command = [sys.executable, "-m", "netclust.kernels.prebuilt", "--all"]
            subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603
        super().run()


if __name__ == "__main__":
    base = base_url()
    setup(
        long_description=long_description((ROOT / "README.md").read_text(), base),
        long_description_content_type="text/markdown",
        project_urls=project_urls(base),
        cmdclass={"build_py": BuildWithKernels, "sdist": SdistWithLinks},
    )

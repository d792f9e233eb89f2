"""setuptools, with what compiles the kernels that a wheel brings along (`netclust/kernels/prebuilt.py`).

An editable install needs setuptools alone, and so does a wheel without kernels (`NETCLUST_PREBUILT=0`).
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.build_meta import get_requires_for_build_wheel as _setuptools_requires

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, str | list[str] | None] | None = None) -> list[str]:
    """Return what a wheel needs to be built: all that netclust needs to run, since building runs its kernels."""
    needed = list(_setuptools_requires(config_settings))
    if sys.platform == "linux" and not os.environ.get("NETCLUST_PREBUILT"):
        project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())["project"]
        needed += project["dependencies"]
    return needed

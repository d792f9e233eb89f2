"""Examples in docstrings, marked as code: Markdown would take their prompts for quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n)(?P=indent).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Put a fence around every example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Every module, class and function as it is loaded."""
        if obj.docstring and "```" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    return f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```"

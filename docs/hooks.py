"""What the documentation builds from code: the page of commands, and links to files of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)(?:#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the page of commands."""
    files.append(File.generated(config, "cli.md", content=commands_page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file outside of docs/ becomes its path; one to a file that does not exist stops the build."""

    if "/" in page.file.src_uri:
        return markdown  # in a folder of docs/, `..` is docs/ itself

    def path(found: re.Match[str]) -> str:
        if not (ROOT / found[2]).exists():
            raise PluginError(f"{page.file.src_uri}: there is no {found[2]} in the repository")
        text = found[1].strip("`")
        return f"`{found[2]}`" if text in found[2] else f"{found[1]} (`{found[2]}`)"

    return OUTSIDE.sub(path, markdown)


def commands_page() -> str:
    """Every command with its options, as the command line itself describes them."""
    from netclust.cli.app import load_commands

    lines = ["# Commands", "", "`netclust COMMAND --help` says the same. Exit code 2 is bad input: one line says what."]
    for name, command in _commands(typer.main.get_command(load_commands()), "netclust"):
        lines += ["", f"## `{name}`", "", str(command.help or "").strip(), ""]
        lines += ["| option | default | meaning |", "|---|---|---|"]
        lines += [_row(option) for option in command.params if option.name not in ("help", "version")]
    return "\n".join(lines) + "\n"


def _row(option: Any) -> str:
    names = option.opts if option.param_type_name == "option" else [str(option.name).upper()]
    default = getattr(option.default, "value", option.default)
    shown = "required" if option.required else "" if default in (None, [], ()) else f"`{default}`"
    meaning = str(getattr(option, "help", None) or "").replace("|", "\\|").replace("\n", " ")
    return f"| {', '.join(f'`{name}`' for name in names)} | {shown} | {meaning} |"


def _commands(command: Any, name: str) -> list[tuple[str, Any]]:
    inside = getattr(command, "commands", None)
    if not inside:
        return [(name, command)]
    return [found for key, each in inside.items() for found in _commands(each, f"{name} {key}")]

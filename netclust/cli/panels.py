"""The panels of `netclust --help`: what a newcomer tries, an operator runs, and people who train and research need."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

PANELS = {
    "Try": ("demo", "simulate", "info", "warmup"),
    "Watch": (
        "watch", "run", "check-config", "alerts", "clusters", "label", "suppress", "snapshots", "rollback", "shards",
        "flows", "detect", "explain",
    ),
    "Train": ("train", "tune", "evaluate", "predict", "cluster", "rank", "profile", "track"),
    "Research": ("score", "reproduce"),
}  # fmt: skip
"""The commands of each panel, in the order of help."""


class PanelledGroup(TyperGroup):
    """A group of commands whose help has a section for each panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the panels."""
        there = super().list_commands(ctx)
        ordered = [name for names in PANELS.values() for name in names if name in there]
        return ordered + [name for name in there if name not in ordered]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel; this is help without colours, as pipes get it."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        for panel, names in PANELS.items():
            found = [(name, self.commands[name]) for name in names if name in self.commands]
            if found:
                with formatter.section(panel):
                    formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in found])


def set_panels(app: typer.Typer) -> None:
    """Give the commands and groups of an application their panels."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    app.info.cls = PanelledGroup
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        command.rich_help_panel = panel_of.get(name.replace("_", "-"))
    for group in app.registered_groups:
        group.rich_help_panel = panel_of.get(group.name or "")

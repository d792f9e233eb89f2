"""The registry of commands: which files add them to the command line. A command loads its own module when it runs."""

from __future__ import annotations

import importlib

import typer

from netclust.cli.panels import set_panels
from netclust.options.groups import app

__all__ = ["app", "load_commands"]

# In the order in which help lists them.
_FILES = (
    "netclust.models.network.commands",
    "netclust.models.experiments.captures.commands",
    "netclust.stream.commands.stream_commands",
    "netclust.datasets.simulators.commands",
    "netclust.cli.info_command",
    "netclust.cli.demo_command",
    "netclust.stream.commands.commands",
    "netclust.stream.sharding.commands",
    "netclust.models.experiments.detection.commands",
    "netclust.models.clustering.commands",
    "netclust.models.experiments.clustering.commands",
    "netclust.models.coreference.commands",
    "netclust.models.experiments.coreference.commands",
    "netclust.models.ranking.commands",
    "netclust.models.experiments.ranking.commands",
    "netclust.models.multilabel.commands",
    "netclust.models.experiments.approximate.commands",
    "netclust.models.chains.commands",
    "netclust.models.attractive.commands",
    "netclust.models.matching.commands",
    "netclust.models.tracking.commands",
    "netclust.models.parsing.commands",
)
# What runs beside traffic loads no file but its own.
_FILE_OF = {
    **dict.fromkeys(("detect", "flows"), "netclust.stream.commands.stream_commands"),
    **dict.fromkeys(("info", "warmup"), "netclust.cli.info_command"),
    **dict.fromkeys(
        ("run", "check-config", "watch", "snapshots", "rollback", "alerts", "clusters", "label", "suppress"),
        "netclust.stream.commands.commands",
    ),
}


def load_commands(command: str | None = None) -> typer.Typer:
    """Return the command line with all its commands, or with at least the given one."""
    alone = _FILE_OF.get(command or "")
    for name in _FILES if alone is None else (alone,):
        importlib.import_module(name)
    set_panels(app)
    return app

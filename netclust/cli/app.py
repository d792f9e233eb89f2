"""The registry of commands: which files add them to the command line. A command loads its own module when it runs."""

from __future__ import annotations

import importlib

import typer

from netclust.cli.groups import app

__all__ = ["app", "load_commands"]

# In the order in which help lists them.
_FILES = (
    "netclust.cli.network_app",
    "netclust.cli.captures_app",
    "netclust.cli.stream_app",
    "netclust.cli.simulate_app",
    "netclust.cli.info_app",
    "netclust.cli.demo_app",
    "netclust.cli.daemon_app",
    "netclust.cli.cluster_app",
    "netclust.cli.growth_app",
    "netclust.cli.clustering_app",
    "netclust.cli.reproduce_clustering_app",
    "netclust.cli.coreference_app",
    "netclust.cli.reproduce_coreference_app",
    "netclust.cli.ranking_app",
    "netclust.cli.reproduce_ranking_app",
    "netclust.cli.multilabel_app",
    "netclust.cli.approximate_app",
    "netclust.cli.chains_app",
    "netclust.cli.attractive_app",
    "netclust.cli.matching_app",
    "netclust.cli.tracking_app",
    "netclust.cli.grammar_app",
)
# What runs beside traffic loads no file but its own.
_FILE_OF = {
    **dict.fromkeys(("detect", "flows"), "netclust.cli.stream_app"),
    **dict.fromkeys(("info", "warmup"), "netclust.cli.info_app"),
    **dict.fromkeys(
        ("run", "check-config", "watch", "snapshots", "rollback", "alerts", "clusters", "label", "suppress"),
        "netclust.cli.daemon_app",
    ),
}


def load_commands(command: str | None = None) -> typer.Typer:
    """Return the command line with all its commands, or with at least the given one."""
    alone = _FILE_OF.get(command or "")
    for name in _FILES if alone is None else (alone,):
        importlib.import_module(name)
    return app

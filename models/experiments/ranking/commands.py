"""The command of the experiment on ranking, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption
from netclust.options.groups import reproduce


@reproduce.command("wikiqa")
def reproduce_wikiqa(
    folder: Annotated[Path, typer.Argument(help="The WikiQA corpus: WikiQA-train.txt, -dev, -test, packed or not.")],
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Orders of the training questions.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="The most epochs that are tried.")] = 30,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    json: JsonOption = None,
) -> None:
    """Rank the answers of WikiQA by an SVM, SR and JSRC, beside the published table."""
    from netclust.models.experiments.ranking.reproduce_ranking import run_ranking_reproduction

    run_ranking_reproduction(folder, seeds, epochs, jobs, json)

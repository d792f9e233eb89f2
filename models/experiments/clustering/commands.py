"""The commands of the experiments on clustering, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.models.clustering.commands import CorrelationSearch
from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import reproduce


@reproduce.command("correlation")
def reproduce_correlation(
    cora: Annotated[Path | None, typer.Option(help="The citations (cora.csv).")] = None,
    newsgroups: Annotated[Path | None, typer.Option(help="The posts (20news-bydate-all.tar.xz).")] = None,
    splits: Annotated[int, typer.Option(min=1, max=100, help="Splits into training and test sets.")] = 10,
    generated: Annotated[bool, typer.Option(help="Also run on generated sets.")] = True,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    json: JsonOption = None,
) -> None:
    """SVM^cluster against pairwise classification: two losses, each trained for and tested under, beside the print."""
    from netclust.models.experiments.clustering.reproduce_clustering import run_correlation_reproduction

    run_correlation_reproduction(cora, newsgroups, splits, generated, jobs, json)


@reproduce.command("irrelevant-features")
def reproduce_irrelevant_features(
    oracle: Annotated[CorrelationSearch, typer.Option(help="How constraints are found.")] = CorrelationSearch.local,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Draws a point of the curve.")] = 20,
    most: Annotated[int, typer.Option(min=1, help="The largest number of irrelevant dimensions.")] = 128,
    plot: Annotated[Path | None, typer.Option(help="Draw the curve (SVG or PNG).")] = None,
    json: JsonOption = None,
) -> None:
    """Learned likeness against k-means as irrelevant dimensions are added."""
    from netclust.models.experiments.clustering.reproduce_clustering import run_clustering_curve

    run_clustering_curve(oracle.value, runs, most, plot, json)


@reproduce.command("clustering-scaling")
def reproduce_scaling(
    plot: Annotated[Path | None, typer.Option(help="Draw times against sizes (SVG or PNG).")] = None,
    json: JsonOption = None,
) -> None:
    """How training and clustering time grow with sets and items, and how the oracles' objectives are ordered."""
    from netclust.models.experiments.clustering.reproduce_clustering import run_clustering_scaling

    run_clustering_scaling(plot, json)


@reproduce.command("kmeans")
def reproduce_kmeans(
    noise: Annotated[
        list[float] | None, typer.Option(help="Noise of the generated pairs; may be given again. Default: 0.2, 0.46.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the data.")] = 5,
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    json: JsonOption = None,
) -> None:
    """Supervised k-means on generated pairs, trained four ways, beside the published table."""
    from netclust.models.experiments.clustering.reproduce_kmeans import kmeans_table

    kmeans_table(noise, draws, seed, json, jobs)

"""The commands of supervised clustering and their options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import app, evaluate, simulate, train
from netclust.options.shared_options import CostOption, ModelOption, OutputModelOption, with_groups


class Loss(StrEnum):
    """What a wrong clustering costs."""

    pairwise = "pairwise"
    mitre = "mitre"


class Structure(StrEnum):
    """What a clustering is made of."""

    correlation = "correlation"
    E = "E"
    K = "K"


class CorrelationLearner(StrEnum):
    """How weights are learned."""

    one_slack = "one-slack"
    n_slack = "n-slack"
    frank_wolfe = "frank-wolfe"
    latent = "latent"
    lsp = "lsp"
    lspa = "lspa"
    pairwise = "pairwise"


class CorrelationSearch(StrEnum):
    """How partitions are searched in training."""

    greedy = "greedy"
    local = "local"
    lp = "lp"
    sdp = "sdp"
    exact = "exact"


class CorrelationPredictor(StrEnum):
    """How new sets are clustered."""

    greedy = "greedy"
    local = "local"
    lp = "lp"
    sdp = "sdp"
    exact = "exact"
    single_link = "single-link"


class KmeansMethod(StrEnum):
    """How k-means is searched."""

    iterative = "iterative"
    spectral = "spectral"
    discrete = "discrete"


class Rescaling(StrEnum):
    """How the loss enters the margin."""

    margin = "margin"
    slack = "slack"


ItemsArgument = Annotated[
    str, typer.Argument(help="A CSV file with a header and an item a line, or a folder (or tar) of documents.")
]
ItemsOption = Annotated[str, typer.Option(help="Labelled items: a CSV file, or a folder (or tar) of documents.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="CSV: the column with the cluster of an item.")]
SetColumn = Annotated[str | None, typer.Option("--set", help="CSV: the column with the set of an item.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="CSV: the column with the name of an item.")]
SetSize = Annotated[
    str | None,
    typer.Option(help="Cut the items into sets of whole clusters with so many items each, like 60-120."),
]


@dataclass(frozen=True)
class LabelledItemOptions:
    """How labelled items are read."""

    label: LabelColumn = None
    set_column: SetColumn = None
    id_column: IdColumn = None
    set_size: SetSize = None


@dataclass(frozen=True)
class ItemOptions:
    """How labelled items are read, and which features their pairs get."""

    label: LabelColumn = None
    set_column: SetColumn = None
    id_column: IdColumn = None
    fields: Annotated[
        list[str] | None,
        typer.Option("--field", help="A column or part to compare; may be given again. Default: all."),
    ] = None
    words: Annotated[
        list[int] | None, typer.Option(help="Compare word n-grams of this length; may be given again.")
    ] = None
    characters: Annotated[
        list[int] | None, typer.Option(help="Compare character n-grams of this length; again for more.")
    ] = None
    set_size: SetSize = None


@dataclass(frozen=True)
class ClusterTrainingOptions:
    """How weights are learned, whatever a clustering is made of."""

    C: CostOption = "cv"
    epsilon: Annotated[float, typer.Option(help="Stop when no constraint is violated by more, in percent of loss.")] = (
        0.1
    )
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the state of training here; if the file exists, go on from it.")
    ] = None
    jobs: Annotated[int, typer.Option(min=1, max=64, help="How many sets are searched at a time.")] = 1
    seed: SeedOption = 0
    json: JsonOption = None


@train.command("correlation")
@with_groups
def train_correlation(
    items: ItemsArgument,
    output: OutputModelOption,
    *,
    options: ItemOptions,
    structure: Annotated[
        Structure, typer.Option(help="correlation: sums within clusters; E: best earlier links; K: a forest.")
    ] = Structure.correlation,
    learner: Annotated[
        CorrelationLearner | None, typer.Option(help="Default: one-slack; lspa for the structures E and K.")
    ] = None,
    loss: Annotated[Loss, typer.Option(help="pairwise: wrong pairs; mitre: 1 - the MUC F1.")] = Loss.pairwise,
    oracle: Annotated[
        CorrelationSearch | None,
        typer.Option(help="How violated constraints are found in training. Default: greedy; local for the loss mitre."),
    ] = None,
    predictor: Annotated[
        CorrelationPredictor | None, typer.Option(help="How new sets are clustered. Default: as in training.")
    ] = None,
    rescaling: Annotated[Rescaling, typer.Option(help="How the loss enters the margin.")] = Rescaling.margin,
    training: ClusterTrainingOptions,
) -> None:
    """Learn from example clusterings which pairs belong together, and write a model file."""
    from netclust.models.clustering.run_clustering import train_items
    from netclust.models.clustering.train_clusterer import usual_oracle

    links = structure is not Structure.correlation
    train_items(
        items,
        output,
        options,
        {
            "structure": structure.value,
            "learner": learner.value if learner else ("lspa" if links else "one-slack"),
            "loss": loss.value,
            "oracle": oracle.value if oracle else usual_oracle(loss.value),
            "predictor": predictor.value if predictor else None,
            "rescaling": rescaling.value,
        },
        training,
    )


@train.command("kmeans")
@with_groups
def train_kmeans(
    items: ItemsArgument,
    output: OutputModelOption,
    *,
    options: ItemOptions,
    method: Annotated[
        KmeansMethod, typer.Option(help="How violated constraints are found in training.")
    ] = KmeansMethod.iterative,
    predictor: Annotated[KmeansMethod, typer.Option(help="How new sets are clustered.")] = KmeansMethod.discrete,
    training: ClusterTrainingOptions,
) -> None:
    """Learn a similarity from example clusterings for k-means on it, and write a model file."""
    from netclust.models.clustering.run_clustering import train_items

    train_items(
        items,
        output,
        options,
        {
            "structure": "kmeans",
            "oracle": method.value,
            "predictor": predictor.value,
        },
        training,
    )


@app.command("cluster")
def cluster_items(
    items: ItemsArgument,
    model: ModelOption,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="CSV: the set, the item and its cluster (- for standard output).")
    ],
    set_column: SetColumn = None,
    id_column: IdColumn = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="k-means: how many clusters a set has. Default: chosen.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Cluster items that nobody has clustered, with a trained model."""
    from netclust.models.clustering.run_clustering import cluster_items as run

    run(items, model, output, set_column, id_column, k, json)


@evaluate.command("correlation")
@with_groups
def evaluate_correlation(
    model: ModelOption,
    test: ItemsOption,
    options: LabelledItemOptions,
    predictor: Annotated[
        CorrelationPredictor | None, typer.Option(help="Cluster by another search than the model's.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Cluster labelled items and measure how far that is from their true clusters."""
    from netclust.models.clustering.run_clustering import evaluate_items

    chosen = predictor.value if predictor else None
    evaluate_items("correlation", model, test, options, chosen, None, seed, json)


@evaluate.command("kmeans")
@with_groups
def evaluate_kmeans(
    model: ModelOption,
    test: ItemsOption,
    options: LabelledItemOptions,
    predictor: Annotated[KmeansMethod | None, typer.Option(help="Cluster by another search than the model's.")] = None,
    choose: Annotated[
        bool, typer.Option("--choose-k", help="Do not tell how many clusters a set has: let it be chosen.")
    ] = False,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Cluster labelled items by k-means and measure how far that is from their true clusters."""
    from netclust.models.clustering.run_clustering import evaluate_items

    chosen = predictor.value if predictor else None
    evaluate_items("kmeans", model, test, options, chosen, not choose, seed, json)


@simulate.command("citations")
def simulate_citations(
    output: Annotated[Path, typer.Option("-o", "--output", help="The CSV file to write (- for standard output).")],
    sets: Annotated[int, typer.Option(min=1, max=10_000, help="How many sets.")] = 6,
    papers: Annotated[int, typer.Option(min=1, max=10_000, help="How many papers a set cites.")] = 8,
    seed: SeedOption = 0,
) -> None:
    """Write made-up citations of made-up papers, with the paper each one cites: something to cluster."""
    from netclust.models.clustering.run_clustering import simulate_citations as run

    run(output, sets, papers, seed)

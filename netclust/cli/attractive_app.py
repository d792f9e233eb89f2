"""The commands of attractive networks and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.cli.app import JsonOption, SeedOption, evaluate, predict, train


class NetworkOracle(StrEnum):
    """How the worst labelling is searched for."""

    cut = "cut"
    lp = "lp"


class NetworkLearner(StrEnum):
    """How the structural SVM is trained."""

    one_slack = "one-slack"
    n_slack = "n-slack"


NodesArgument = Annotated[
    str, typer.Argument(help="Nodes, a row each: a CSV with a header, or JSON lines as `netclust detect` writes them.")
]
EdgesOption = Annotated[
    str | None, typer.Option(help="A table of ties: columns from and to hold ids of nodes; relation tells kinds apart.")
]
TablesOption = Annotated[
    list[str] | None, typer.Option("--table", help="NAME=FILE: a further table that templates are about.")
]
TruthOption = Annotated[
    str | None, typer.Option(help="A file whose label column is the truth of the nodes, row by row.")
]
NormalOption = Annotated[
    list[str] | None,
    typer.Option(help="Labels that are normal; all others then count as attack. May be given again."),
]
ModelOption = Annotated[Path, typer.Option(help="The model file.")]


@train.command("attractive")
def train_attractive(
    nodes: NodesArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    edges: EdgesOption = None,
    templates: Annotated[
        str | None,
        typer.Option(help="A TOML file of relational templates, or connections for those between hosts."),
    ] = None,
    tables: TablesOption = None,
    truth: TruthOption = None,
    normal: NormalOption = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--field", help="A column to judge nodes by; again for more. Default: all columns of numbers."),
    ] = None,
    label: Annotated[str, typer.Option(help="The column with the label.")] = "label",
    ident: Annotated[str, typer.Option("--id", help="The column that edges name.")] = "id",
    time: Annotated[str, typer.Option(help="The column with the time.")] = "time",
    network: Annotated[str, typer.Option(help="The column that tells networks apart.")] = "network",
    cut: Annotated[
        int | None,
        typer.Option(min=2, help="Without that column: networks of at most so many rows that follow each other."),
    ] = None,
    oracle: Annotated[
        NetworkOracle, typer.Option(help="Three labels and more: how the worst labelling is searched for.")
    ] = NetworkOracle.cut,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Every label counts the same, however few nodes have it.")
    ] = False,
    C: Annotated[str, typer.Option("--C", help="Weight of the loss: a number, or cv to choose it.")] = "cv",
    epsilon: Annotated[float, typer.Option(help="How far a constraint may be violated at the end, percent.")] = 0.1,
    learner: Annotated[NetworkLearner, typer.Option(help="How weights are learned.")] = NetworkLearner.one_slack,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from labelled nodes what they look like, and how much those that are tied agree."""
    from netclust.cli.attractive import TableOptions, train_networks
    from netclust.models.attractive import Columns

    columns = Columns(fields=tuple(fields or ()), label=label, id=ident, time=time, network=network)
    options = TableOptions(nodes, edges, templates, tuple(tables or ()), truth, tuple(normal or ()), cut)
    settings = {
        "oracle": oracle.value, "balanced": balanced, "epsilon": epsilon, "learner": learner.value, "seed": seed,
    }  # fmt: skip
    train_networks(options, columns, output, settings, C, json)


@predict.command("attractive")
def predict_attractive(
    nodes: NodesArgument,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="CSV: id, label, label of the node alone (- for standard output)."),
    ],
    edges: EdgesOption = None,
    tables: TablesOption = None,
    json: JsonOption = None,
) -> None:
    """Label nodes together: each by itself, and by those that it is tied to."""
    from netclust.cli.attractive import TableOptions, predict_networks

    predict_networks(TableOptions(nodes, edges, None, tuple(tables or ())), model, output, json)


@evaluate.command("attractive")
def evaluate_attractive(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Nodes whose labels are known.")],
    edges: EdgesOption = None,
    tables: TablesOption = None,
    truth: TruthOption = None,
    normal: NormalOption = None,
    json: JsonOption = None,
) -> None:
    """Label nodes and measure against their true labels."""
    from netclust.cli.attractive import TableOptions, evaluate_networks

    evaluate_networks(TableOptions(test, edges, None, tuple(tables or ()), truth, tuple(normal or ())), model, json)

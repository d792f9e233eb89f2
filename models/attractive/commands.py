"""The commands of attractive networks and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import evaluate, predict, train
from netclust.options.shared_options import CostOption, EpsilonOption, ModelOption, NormalOption, OutputModelOption


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


@train.command("attractive")
def train_attractive(
    nodes: NodesArgument,
    output: OutputModelOption,
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
    C: CostOption = "cv",
    epsilon: EpsilonOption = 0.1,
    learner: Annotated[NetworkLearner, typer.Option(help="How weights are learned.")] = NetworkLearner.one_slack,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from labelled nodes what they look like, and how much those that are tied agree."""
    from netclust.models.attractive.run_attractive import RelationOptions, train_networks
    from netclust.models.attractive.tables import RelationColumns

    columns = RelationColumns(fields=tuple(fields or ()), label=label, id=ident, time=time, network=network)
    options = RelationOptions(nodes, edges, templates, tuple(tables or ()), truth, tuple(normal or ()), cut)
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
    from netclust.models.attractive.run_attractive import RelationOptions, predict_networks

    predict_networks(RelationOptions(nodes, edges, None, tuple(tables or ())), model, output, json)


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
    from netclust.models.attractive.run_attractive import RelationOptions, evaluate_networks

    evaluate_networks(RelationOptions(test, edges, None, tuple(tables or ()), truth, tuple(normal or ())), model, json)

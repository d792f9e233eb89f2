"""The commands of ranking and their options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import app, evaluate, train
from netclust.options.shared_options import CostOption, ModelOption, OutputModelOption, with_groups


class RankerModel(StrEnum):
    """What is learned."""

    sr = "sr"
    jsrc = "jsrc"


class RankerSearch(StrEnum):
    """How the max-violating ranking is found."""

    exact = "exact"
    greedy = "greedy"


class RankerFormat(StrEnum):
    """What a file of queries looks like."""

    auto = "auto"
    svmrank = "svmrank"
    csv = "csv"
    pairs = "pairs"


QueriesArgument = Annotated[
    str, typer.Argument(help="Queries with candidates: SVMrank's format, a CSV of numbers, or question-answer texts.")
]


@dataclass(frozen=True)
class QueryOptions:
    """How queries are read."""

    format: Annotated[RankerFormat, typer.Option(help="The file's format. Default: recognised.")] = RankerFormat.auto
    query: Annotated[str | None, typer.Option(help="CSV: the column with the query. Default: query.")] = None
    label: Annotated[str | None, typer.Option(help="CSV: the column with the label. Default: label.")] = None
    id: Annotated[str | None, typer.Option(help="CSV: the column with the candidate's name. Default: id.")] = None
    question: Annotated[str | None, typer.Option(help="Texts: the column with the question. Default: question.")] = None
    answer: Annotated[
        str | None, typer.Option(help="Texts: the column with the candidate answer. Default: answer.")
    ] = None


@dataclass(frozen=True)
class FieldQueryOptions(QueryOptions):
    """The same, and what is learned from."""

    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A column to rank by; may be given again. Default: all others.")
    ] = None


@train.command("ranking")
@with_groups
def train_ranking(
    queries: QueriesArgument,
    output: OutputModelOption,
    *,
    model: Annotated[
        RankerModel, typer.Option("--learn", help="sr: rank; jsrc: rank and cluster at once.")
    ] = RankerModel.sr,
    dev: Annotated[
        str | None, typer.Option(help="Judged queries to choose C and epochs by. Default: folds of the training ones.")
    ] = None,
    C: CostOption = "cv",
    epochs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Passes over the queries; where C is chosen, the most tried.")
    ] = 20,
    search: Annotated[
        RankerSearch, typer.Option(help="sr: how the most violating ranking is found.")
    ] = RankerSearch.exact,
    options: FieldQueryOptions,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from judged candidates how to rank, and write a model file."""
    from netclust.models.ranking.run_ranking import train_queries

    train_queries(queries, output, options, model.value, dev, C, epochs, search.value, seed, json)


@app.command("rank")
@with_groups
def rank_queries(
    queries: QueriesArgument,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="CSV: query, rank, candidate, score, cluster (- for standard output)."),
    ],
    options: QueryOptions,
    json: JsonOption = None,
) -> None:
    """Rank the candidates of queries that nobody has judged, with a trained model."""
    from netclust.models.ranking.run_ranking import rank_queries as run

    run(queries, model, output, options, json)


@evaluate.command("ranking")
@with_groups
def evaluate_ranking(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Queries with judged candidates.")],
    options: QueryOptions,
    json: JsonOption = None,
) -> None:
    """Rank judged candidates and measure MAP, MRR and P@1."""
    from netclust.models.ranking.run_ranking import evaluate_queries

    evaluate_queries(model, test, options, json)

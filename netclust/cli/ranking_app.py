"""The commands of ranking and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.cli.app import JsonOption, SeedOption, app, evaluate, reproduce, train


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
Format = Annotated[RankerFormat, typer.Option("--format", help="The file's format. Default: recognised.")]
QueryColumn = Annotated[str | None, typer.Option("--query", help="CSV: the column with the query. Default: query.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="CSV: the column with the label. Default: label.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="CSV: the column with the candidate's name. Default: id.")]
QuestionColumn = Annotated[
    str | None, typer.Option("--question", help="Texts: the column with the question. Default: question.")
]
AnswerColumn = Annotated[
    str | None, typer.Option("--answer", help="Texts: the column with the candidate answer. Default: answer.")
]
ModelOption = Annotated[Path, typer.Option(help="The model file.")]


@train.command("ranking")
def train_ranking(
    queries: QueriesArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    model: Annotated[
        RankerModel, typer.Option("--learn", help="sr: rank; jsrc: rank and cluster at once.")
    ] = RankerModel.sr,
    dev: Annotated[
        str | None, typer.Option(help="Judged queries to choose C and epochs by. Default: folds of the training ones.")
    ] = None,
    C: Annotated[str, typer.Option("--C", help="Weight of the loss: a number, or cv to choose it.")] = "cv",
    epochs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Passes over the queries; where C is chosen, the most tried.")
    ] = 20,
    search: Annotated[
        RankerSearch, typer.Option(help="sr: how the most violating ranking is found.")
    ] = RankerSearch.exact,
    format_: Format = RankerFormat.auto,
    query: QueryColumn = None,
    label: LabelColumn = None,
    ident: IdColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A column to rank by; may be given again. Default: all others.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from judged candidates how to rank, and write a model file."""
    from netclust.cli.ranking import QueryOptions, train_queries

    options = QueryOptions(format_.value, query, label, ident, question, answer, fields)
    train_queries(queries, output, options, model.value, dev, C, epochs, search.value, seed, json)


@app.command("rank")
def rank_queries(
    queries: QueriesArgument,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="CSV: query, rank, candidate, score, cluster (- for standard output)."),
    ],
    format_: Format = RankerFormat.auto,
    query: QueryColumn = None,
    label: LabelColumn = None,
    ident: IdColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    json: JsonOption = None,
) -> None:
    """Rank the candidates of queries that nobody has judged, with a trained model."""
    from netclust.cli.ranking import QueryOptions
    from netclust.cli.ranking import rank_queries as run

    run(queries, model, output, QueryOptions(format_.value, query, label, ident, question, answer), json)


@evaluate.command("ranking")
def evaluate_ranking(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Queries with judged candidates.")],
    format_: Format = RankerFormat.auto,
    query: QueryColumn = None,
    label: LabelColumn = None,
    ident: IdColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    json: JsonOption = None,
) -> None:
    """Rank judged candidates and measure MAP, MRR and P@1."""
    from netclust.cli.ranking import QueryOptions, evaluate_queries

    evaluate_queries(model, test, QueryOptions(format_.value, query, label, ident, question, answer), json)


@reproduce.command("wikiqa")
def reproduce_wikiqa(
    folder: Annotated[Path, typer.Argument(help="The WikiQA corpus: WikiQA-train.txt, -dev, -test, packed or not.")],
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Orders of the training questions.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="The most epochs that are tried.")] = 30,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    json: JsonOption = None,
) -> None:
    """Rank the answers of WikiQA by an SVM, SR and JSRC, beside the published table."""
    from netclust.cli.reproduce_ranking import run

    run(folder, seeds, epochs, jobs, json)

"""The commands of multi-label models and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import evaluate, predict, simulate, train
from netclust.options.shared_options import CostOption, ModelOption, OutputModelOption, SvmLearner


class LabelSearch(StrEnum):
    """How labels are found."""

    auto = "auto"
    greedy = "greedy"
    lbp = "lbp"
    combine = "combine"
    exact = "exact"
    lp = "lp"
    cut = "cut"


class LabelFile(StrEnum):
    """What a file of rows looks like."""

    auto = "auto"
    arff = "arff"
    libsvm = "libsvm"
    csv = "csv"


class WrittenFile(StrEnum):
    """What a written file looks like."""

    arff = "arff"
    libsvm = "libsvm"
    csv = "csv"


class MadeLabels(StrEnum):
    """Which problem."""

    synth1 = "synth1"
    synth2 = "synth2"


class FeatureScale(StrEnum):
    """What is done to features."""

    auto = "auto"
    none = "none"


RowsArgument = Annotated[
    str, typer.Argument(help="Rows: ARFF (Mulan's, MEKA's), LIBSVM's multi-label format, or a CSV; packed or not.")
]
Format = Annotated[LabelFile, typer.Option("--format", help="The file's format. Default: recognised.")]
Labels = Annotated[
    str | None,
    typer.Option(
        help="ARFF, CSV: which columns are labels: names with commas, or N for the first N, -N for the last N. "
        "Default for ARFF: the .xml beside the file, else -C N in its relation's name."
    ),
]
Prefix = Annotated[str | None, typer.Option(help="ARFF, CSV: labels are the columns whose name begins so.")]
NamesFile = Annotated[Path | None, typer.Option("--label-file", help="Label names: Mulan's XML, or one a line.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="CSV: the column that names rows. Default: numbers.")]


@train.command("multilabel")
def train_multilabel(
    rows: RowsArgument,
    output: OutputModelOption,
    labels: Labels = None,
    prefix: Prefix = None,
    label_file: NamesFile = None,
    format_: Format = LabelFile.auto,
    ident: IdColumn = None,
    oracle: Annotated[
        LabelSearch, typer.Option(help="Finds the most violated labelling in training; auto: cut.")
    ] = LabelSearch.auto,
    predictor: Annotated[
        LabelSearch, typer.Option(help="Finds the labels of a row; auto: exact up to 12 labels, else combine.")
    ] = LabelSearch.auto,
    edges: Annotated[
        bool, typer.Option(help="Weights for pairs of labels; without, labels are told one by one.")
    ] = True,
    scale: Annotated[
        FeatureScale, typer.Option(help="auto: centred and in standard deviations; sparse ones only divided.")
    ] = FeatureScale.auto,
    C: CostOption = "cv",
    folds: Annotated[int, typer.Option(min=2, max=100, help="Folds of cv.")] = 5,
    epsilon: Annotated[float, typer.Option(help="Training stops at so little violation, in percent of loss.")] = 0.1,
    learner: Annotated[SvmLearner, typer.Option(help="Which structural SVM.")] = SvmLearner.one_slack,
    max_iterations: Annotated[int, typer.Option(min=1, help="Training stops after so many.")] = 500,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from rows whose labels are known to find all labels of a row together, and write a model file."""
    from netclust.models.multilabel.run_multilabel import LabelFileOptions, train_labels

    options = LabelFileOptions(format_.value, labels, prefix, label_file, ident)
    settings = {
        "oracle": oracle.value, "predictor": predictor.value, "edges": edges, "scale": scale.value, "epsilon": epsilon,
        "learner": learner.value, "max_iterations": max_iterations, "seed": seed,
    }  # fmt: skip
    train_labels(rows, output, options, settings, C, folds, json)


@predict.command("multilabel")
def predict_multilabel(
    rows: RowsArgument,
    model: ModelOption,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="CSV: the row, then 0 or 1 a label (- for standard output).")
    ],
    format_: Format = LabelFile.auto,
    ident: IdColumn = None,
    json: JsonOption = None,
) -> None:
    """Find the labels of rows with a trained model; labels that the file may have are not looked at."""
    from netclust.models.multilabel.run_multilabel import LabelFileOptions, predict_labels

    predict_labels(rows, model, output, LabelFileOptions(format_.value, id=ident), json)


@evaluate.command("multilabel")
def evaluate_multilabel(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Rows whose labels are known.")],
    format_: Format = LabelFile.auto,
    ident: IdColumn = None,
    json: JsonOption = None,
) -> None:
    """Find the labels of rows whose labels are known, and measure."""
    from netclust.models.multilabel.run_multilabel import LabelFileOptions, evaluate_labels

    evaluate_labels(model, test, LabelFileOptions(format_.value, id=ident), json)


@simulate.command("labels")
def simulate_labels(
    kind: Annotated[MadeLabels, typer.Argument(help="synth1: pairs of labels help; synth2: they are needed.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write: .arff, .csv, else LIBSVM.")],
    rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many rows.")] = 1000,
    seed: SeedOption = 0,
    bias: Annotated[bool, typer.Option("--bias", help="synth2: append a constant feature.")] = False,
    format_: Annotated[WrittenFile | None, typer.Option("--format", help="Default: by the file's name.")] = None,
) -> None:
    """Write rows with labels of a made problem whose best solution is known."""
    from netclust.models.multilabel.run_multilabel import simulate_labels as run

    run(kind.value, output, rows, seed, bias, None if format_ is None else format_.value)

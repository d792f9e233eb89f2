"""The commands of coreference and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import predict, score, simulate, train
from netclust.options.shared_options import OutputModelOption


class Metric(StrEnum):
    """What a response is measured by."""

    mentions = "mentions"
    muc = "muc"
    b3 = "b3"
    ceafm = "ceafm"
    ceafe = "ceafe"
    blanc = "blanc"
    lea = "lea"
    mela = "mela"


@score.command("coreference")
def score_coreference(
    key: Annotated[str, typer.Argument(help="The true entities: a file or a folder of documents (CoNLL, CoNLL-U).")],
    response: Annotated[str, typer.Argument(help="The entities to be measured, of the same documents.")],
    metric: Annotated[
        list[Metric] | None, typer.Option(help="Which metric; may be given again. Default: all of them.")
    ] = None,
    singletons: Annotated[
        bool,
        typer.Option(
            "--keep-singletons/--no-singletons",
            help="Entities of one mention count as they are given, or are left out on both sides, as in CoNLL-2012.",
        ),
    ] = True,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="A document that the response lacks counts as one without entities.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Score a response as the reference scorer does: MUC, B3, CEAF, BLANC, LEA, MELA, and mention detection."""
    from netclust.models.coreference.score_coreference import run_scoring

    run_scoring(key, response, [name.value for name in metric or Metric], singletons, missing_ok, json)


class CoreferenceLearner(StrEnum):
    """What learns: a perceptron, its passive-aggressive twin, a structural SVM, or perceptrons with a learned loss."""

    lsp = "lsp"
    lspa = "lspa"
    lssvm = "lssvm"
    rho = "rho"
    rho_joint = "rho-joint"
    rho_online = "rho-online"


class TreeStructure(StrEnum):
    """What entities are found by: antecedents (E) or a forest of the best pairs (K)."""

    E = "E"
    K = "K"


class EdgeLoss(StrEnum):
    """What a wrong link costs while learning."""

    f = "f"
    yj = "yj"


class MentionChoice(StrEnum):
    """Whose mentions are clustered: those in the file, or those found in its text."""

    gold = "gold"
    auto = "auto"


DocumentsArgument = Annotated[
    str, typer.Argument(help="Documents: a file or a folder (CoNLL, CoNLL-U, plain text; - for standard input).")
]


@train.command("coreference")
def train_coreference(
    documents: DocumentsArgument,
    output: OutputModelOption,
    dev: Annotated[
        str | None, typer.Option(help="Documents to choose the number of epochs on. Default: every tenth is held out.")
    ] = None,
    learner: Annotated[
        CoreferenceLearner, typer.Option(help="What learns; rho: with a loss learned from MELA.")
    ] = CoreferenceLearner.rho_joint,
    structure: Annotated[TreeStructure, typer.Option(help="E: antecedent trees; K: forests.")] = TreeStructure.E,
    loss: Annotated[EdgeLoss | None, typer.Option(help="Delta_F or Delta_YJ. Default: f for E, yj for K.")] = None,
    C: Annotated[
        float | None, typer.Option("--C", help="Weight of the loss (SVM: price of the slack). Default: by learner.")
    ] = None,
    r: Annotated[float | None, typer.Option(help="The loss' price of a wrong root arc (f) or link (yj).")] = None,
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="At most so many passes over the documents.")] = 20,
    mentions: Annotated[
        MentionChoice, typer.Option(help="gold: those in the file; auto: found in the text.")
    ] = MentionChoice.gold,
    distance: Annotated[int, typer.Option(min=1, help="How many mentions back an antecedent may be.")] = 300,
    bits: Annotated[int, typer.Option(min=18, max=24, help="Features are hashed to 2^bits slots.")] = 20,
    strongest: Annotated[int | None, typer.Option(min=1, help="Keep so many features, the strongest.")] = None,
    cache: Annotated[Path | None, typer.Option(help="A folder to keep features in, for further runs.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Threads that extract features.")] = 2,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn to find the entities of documents from documents whose entities are known."""
    from netclust.models.coreference.run_coreference import train_documents

    chosen = {
        "learner": learner.value,
        "structure": structure.value,
        "loss": loss.value if loss else None,
        "C": C,
        "r": r,
        "epochs": epochs,
        "mentions": mentions.value,
        "strongest": strongest,
        "seed": seed,
    }
    train_documents(documents, output, dev, chosen, {"distance": distance, "bits": bits}, cache, jobs, json)


@predict.command("coreference")
def predict_coreference(
    model: Annotated[Path, typer.Argument(help="A model of `train coreference`.")],
    documents: DocumentsArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write CoNLL-2012 here (-: standard output).")
    ] = None,
    mentions: Annotated[
        MentionChoice | None,
        typer.Option(help="Cluster the file's mentions, or find them. Default: as the model was trained."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write pages with coloured entities: a file, or a folder.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Threads that extract features.")] = 2,
    json: JsonOption = None,
) -> None:
    """Find the entities of documents. Without -o they are listed."""
    from netclust.models.coreference.run_coreference import predict_documents

    predict_documents(model, documents, output, mentions.value if mentions else None, html, jobs, json)


@simulate.command("stories")
def simulate_stories(
    output: Annotated[Path, typer.Option("-o", "--output", help="The CoNLL file to write (- for standard output).")],
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many stories.")] = 50,
    seed: SeedOption = 0,
) -> None:
    """Write made-up stories with their mentions and entities: something to train coreference on."""
    from netclust.models.coreference.run_coreference import write_stories

    write_stories(output, count, seed)

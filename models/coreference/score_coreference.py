"""`netclust score coreference`: a response against its key, document by document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.coreference.coreference_metrics import Sums, coreference_scores, document_counts, total_counts
from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.formats.reading import read_documents
from netclust.options.output import (
    check_folders,
    check_not_input,
    checksum_of,
    echo,
    output_note,
    output_result,
    output_table,
    write_json,
)

TITLES = {
    "mentions": "mentions",
    "muc": "MUC",
    "b3": "B3",
    "ceafm": "CEAF_m",
    "ceafe": "CEAF_e",
    "blanc": "BLANC",
    "lea": "LEA",
    "mela": "MELA",
}


def run_scoring(
    key: str, response: str, metrics: Sequence[str], singletons: bool, missing_ok: bool, json: Path | None
) -> None:
    """Read both sides, match their documents, and print the scores of all of them together."""
    if key == response == "-":
        raise InputError("the key and the response cannot both be standard input: give a file for one of them")
    check_folders(json)
    for given in (key, response):
        check_not_input(given, json)
    metrics = [name for name in TITLES if name in metrics]
    notes: list[str] = []
    truths, answers = read_documents(key, notes=notes), read_documents(response, notes=notes)
    for passed_over in notes:
        output_note(passed_over)
    pairs = _match_documents(truths, answers, key, response, missing_ok=missing_ok)
    if not any(truth.entities() for truth in truths):
        raise InputError(f"{key}: the key has no entities: there is nothing to score against")
    other = [truth for truth, answer in pairs if answer is not None and answer.words != truth.words]
    if other:
        output_note(
            f"{response}: {_called(other[0])} has other words than in the key; mentions are compared by their places"
        )
    counts = [
        document_counts(_entities(truth, singletons), _entities(answer, singletons) if answer else [], metrics)
        for truth, answer in pairs
    ]
    missing = sum(answer is None for _, answer in pairs)
    total = total_counts(counts)
    scores = coreference_scores(total, metrics)
    if str(json) != "-":
        absent = f", {missing:,} of them missing from the response" if missing else ""
        rows = [[TITLES[name], *_percents(name, scores[name])] for name in metrics]
        output_table(
            f"{len(pairs):,} {'document' if len(pairs) == 1 else 'documents'}{absent}", ["", "P", "R", "F1"], rows
        )
        echo("percent, from sums over documents; MELA is the mean F1 of MUC, B3 and CEAF_e" if "mela" in metrics
            else "percent, from sums over documents")  # fmt: skip
    body = {
        "scores": {name: scores[name]._asdict() for name in metrics},
        "sums": _sums(total),
        "singletons": singletons,
        "missing": missing,
        "documents": [
            {"name": truth.name, "part": truth.part, "missing": answer is None, "sums": _sums(found)}
            for (truth, answer), found in zip(pairs, counts, strict=True)
        ],
    }
    data = {given: checksum_of(given) for given in (key, response) if given != "-"}
    write_json(json, output_result(["score", "coreference"], body, seed=None, data=data))


def _match_documents(
    truths: Sequence[Document], answers: Sequence[Document], key: str, response: str, *, missing_ok: bool
) -> list[tuple[Document, Document | None]]:
    """Return every document of the key with that of its name and part in the response."""
    by_name = {(document.name, document.part): document for document in answers}
    wanted = {(document.name, document.part) for document in truths}
    for document in answers:
        if (document.name, document.part) not in wanted:
            raise InputError(f"{response}: {_called(document)} is not in the key {key}: take it out, or add it there")
    pairs = []
    for truth in truths:
        answer = by_name.get((truth.name, truth.part))
        if answer is None and not missing_ok:
            raise InputError(
                f"{response}: {_called(truth)} of the key is missing: add it, or score it as empty with --missing-ok"
            )
        if answer is not None and len(answer.words) != len(truth.words):
            raise InputError(
                f"{response}: {_called(truth)} has {len(answer.words):,} words, and {len(truth.words):,} in the key: "
                "mentions can be compared in the same text only"
            )
        pairs.append((truth, answer))
    return pairs


def _entities(document: Document, singletons: bool) -> list[frozenset[Span]]:
    """Return the entities of a document, with those of one mention or without."""
    return [cluster for cluster in document.clusters() if singletons or len(cluster) > 1]


def _called(document: Document) -> str:
    return f"document {sanitize(document.name)} part {document.part}"


def _percents(name: str, scores: Any) -> list[str]:
    shown = [f"{100 * part:.2f}" for part in scores]
    return ["-", "-", shown[2]] if name == "mela" else shown


def _sums(counts: Sums) -> dict[str, Any]:
    """Counts as a result holds them: BLANC's are of two kinds of pairs."""
    return {
        name: {kind: part._asdict() for kind, part in found._asdict().items()} if name == "blanc" else found._asdict()
        for name, found in counts.items()
    }

"""`netclust train coreference`, `netclust predict coreference` and `netclust simulate stories`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.foundation.model_file import Provenance
from netclust.models.coreference.examples import MentionSource
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.formats.html_view import to_html
from netclust.models.coreference.formats.reading import read_documents
from netclust.models.coreference.formats.writing import to_conll, write_conll
from netclust.models.coreference.mentions.detection import columns_used
from netclust.models.coreference.model import CoreferenceModel
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.coreference.train_coreference import TrainingReport, train_coreference
from netclust.options.output import (
    check_folders,
    check_not_input,
    check_outputs,
    checksum_of,
    counted,
    echo,
    output_note,
    output_result,
    output_table,
    write_json,
    write_model_info,
)

LISTED_ENTITIES = 12
LISTED_MENTIONS = 8


def train_documents(
    documents: str,
    output: Path,
    dev: str | None,
    chosen: dict[str, Any],
    features: dict[str, Any],
    cache: Path | None,
    jobs: int,
    json: Path | None,
) -> None:
    """Read documents, learn, write the model."""
    check_folders(output, json)
    check_outputs(output, json)
    for given in (documents, *([dev] if dev else ())):
        check_not_input(given, output, json)
    settings = CoreferenceSettings(**chosen, features=FeatureSettings(**features))
    train, chosen_on = _read(documents), _read(dev) if dev else []
    if dev and _checksum(dev) == _checksum(documents) != "":
        raise InputError(f"{dev}: --dev are the documents that are learned from: epochs need others, or leave it out")
    start = time.perf_counter()
    model, report = train_coreference(train, settings, dev=chosen_on, jobs=jobs, cache=cache, on_epoch=_report_epoch)
    seconds = time.perf_counter() - start
    checksum = _checksum(documents)
    provenance = Provenance.now(
        seed=settings.seed,
        data=Path(documents).name,
        sha256=checksum,
        records=sum(len(document.mentions) for document in train),
        params={"documents": len(train), "epochs": report.epochs, "mela": max(report.curve, default=None)},
    )
    replace(model, provenance=provenance).save(output)
    if str(json) != "-":
        _print_trained(settings, report, seconds, output)
    body = {"settings": settings, "report": report, "training_seconds": seconds}
    write_json(
        json, output_result(["train", "coreference"], body, seed=settings.seed, data={Path(documents).name: checksum})
    )


def predict_documents(
    model_file: Path,
    documents: str,
    output: Path | None,
    mentions: MentionSource | None,
    html: Path | None,
    jobs: int,
    json: Path | None,
) -> None:
    """Read documents, find their entities, write or list them."""
    check_folders(output, json, None if html is None or html.is_dir() else html)
    check_outputs(output, json, html)
    if str(html) in ("-", "."):
        raise InputError(f"--html {html}: give a file that ends in .html, or a folder")
    check_not_input(documents, output, json, html)
    check_not_input(str(model_file), output, json, html)
    if str(output) == str(json) == "-":
        raise InputError("documents and JSON cannot both go to standard output: give one of them a file")
    model = CoreferenceModel.load(model_file)
    given = _read(documents)
    resolved = model.predict(given, mentions=mentions, jobs=jobs)
    searched = [document for document in given if not model.uses_mentions(document, mentions)]
    if searched:
        output_note(f"mentions were found in the text by {', '.join(sorted(set(map(columns_used, searched))))}")
    if html is not None:
        _write_pages(html, resolved)
    notes: list[str] = []
    if output is not None:
        write_conll(resolved, output, notes=notes)
    for line in notes:
        output_note(line)
    if "-" not in (str(output), str(json)):
        if output is None:
            for document in resolved:
                _list_entities(document)
        entities = sum(len(document.entities()) for document in resolved)
        count = sum(len(document.mentions) for document in resolved)
        echo(f"{counted(len(resolved), 'document')}, {counted(count, 'mention')}, {entities:,} entities")
        for path in (output, html, json):
            if path is not None:
                echo(f"wrote {path}")
    body = {
        "documents": [
            {
                "name": document.name,
                "part": document.part,
                "words": document.words,
                "sentences": document.sentences,
                "entities": [
                    [[*document.mentions[k].span, document.text(document.mentions[k])] for k in numbers]
                    for numbers in document.entities().values()
                ],
            }
            for document in resolved
        ]
    }
    checksum = _checksum(documents)
    write_json(
        json, output_result(["predict", "coreference"], body, seed=model.settings.seed, data={documents: checksum})
    )


def write_stories(output: Path, count: int, seed: int) -> None:
    """Write made-up stories."""
    check_folders(output)
    stories = simulate_documents(count, seed)
    text = "".join(map(to_conll, stories)).encode()
    if str(output) == "-":
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    else:
        write_container_bytes(output, text)
    output_note(f"{count:,} stories with {counted(sum(len(story.mentions) for story in stories), 'mention')}")


def describe_coreference_model(path: Path, json: Path | None) -> None:
    """Describe the file of a coreference model."""
    model = CoreferenceModel.load(path)
    origin, settings = model.provenance, model.settings
    weights = int((model.w != 0).sum())
    if str(json) != "-":
        facts: list[list[Any]] = [
            ["task", "coreference"],
            ["model", settings.name],
            ["mentions", settings.mentions],
            ["C, r", f"{settings.cost:g}, {'usual' if settings.r is None else f'{settings.r:g}'}"],
            ["slots, weights", f"{settings.features.dimension:,}, {weights:,}"],
            ["candidates", f"{settings.features.distance} mentions back"],
            ["trained on", f"{origin.data or '?'} ({origin.records:,} mentions, seed {origin.seed})"],
            ["epochs", _chosen_epochs(origin)],
            ["sha256 of that", origin.sha256 or "?"],
            ["made", f"{origin.created} by netclust {origin.netclust}"],
        ]
        output_table(str(path), ["", ""], facts)
        echo(f"{path.stat().st_size:,} bytes")
    write_model_info(json, path, origin, task="coreference", settings=settings, weights=weights)


def _chosen_epochs(origin: Provenance) -> str:
    mela = origin.params.get("mela")
    return f"{origin.params.get('epochs', '?')}" + (f", MELA {mela:.2f} where they were chosen" if mela else "")


def _read(path: str) -> list[Document]:
    notes: list[str] = []
    documents = read_documents(path, notes=notes)
    for line in notes:
        output_note(line)
    return documents


def _checksum(path: str) -> str:
    return "" if path == "-" else checksum_of(path)


def _report_epoch(epoch: int, mela: float | None) -> None:
    output_note(
        f"epoch {epoch}" + ("" if mela is None else f": MELA {mela:.2f} on documents that are not learned from")
    )


def _print_trained(settings: CoreferenceSettings, report: TrainingReport, seconds: float, output: Path) -> None:
    size = f"{counted(report.documents, 'document')}, {report.mentions:,} mentions, {report.pairs:,} pairs"
    echo(f"{settings.name} on {size}")
    echo(f"mentions: {report.found_by}; templates that say nothing here: {', '.join(report.void) or 'none'}")
    if report.curve and report.epochs:
        how = "every tenth document, then all were learned from" if report.held_out else "the development documents"
        echo(f"{counted(report.epochs, 'epoch')}, MELA {max(report.curve):.2f}, chosen on {how}")
    elif report.epochs:
        echo(f"{counted(report.epochs, 'epoch')}; there were too few documents to choose their number on")
    if report.gap is not None:
        end = "" if report.converged else "; it stopped before its rounds settled: more precision would take long"
        echo(f"SVM: C = {settings.cost:g}, gap {report.gap:.3g}{end}; small documents may want a larger C")
    echo(f"wrote {output} after {seconds:.1f} s")


def _list_entities(document: Document) -> None:
    """The entities of several mentions, the largest first."""
    groups = [numbers for numbers in document.entities().values() if len(numbers) > 1]
    groups.sort(key=len, reverse=True)
    rows = []
    for numbers in groups[:LISTED_ENTITIES]:
        texts = Counter(document.text(document.mentions[k]) for k in numbers)
        shown = [f"{text} x{n}" if n > 1 else text for text, n in texts.items()]
        more = f", and {len(shown) - LISTED_MENTIONS} more" if len(shown) > LISTED_MENTIONS else ""
        rows.append([len(numbers), ", ".join(shown[:LISTED_MENTIONS]) + more])
    if len(groups) > LISTED_ENTITIES:
        rows.append(["", f"and {len(groups) - LISTED_ENTITIES} more"])
    title = document.name if not document.part else f"{document.name}, part {document.part}"
    if rows:
        output_table(title, ["mentions", "entity"], rows)
    else:
        echo(f"{title}: no entity is mentioned twice\n")


def _write_pages(path: Path, documents: list[Document]) -> None:
    """One page into the file, or a page a document into the folder."""
    if path.suffix == ".html" and not path.is_dir():
        if len(documents) > 1:
            raise InputError(f"{path}: {len(documents)} documents do not go into one page: give a folder")
        write_container_bytes(path, to_html(documents[0]).encode())
        return
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be a folder for pages: {error.strerror}") from None
    for number, document in enumerate(documents):
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in document.name).strip(".-")[:80]
        write_container_bytes(path / f"{number:03d}-{safe or 'document'}.html", to_html(document).encode())

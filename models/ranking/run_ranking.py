"""`netclust train ranking`, `netclust rank` and `netclust evaluate ranking`."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from netclust.datasets.queries import Queries, QueryColumns, read_queries
from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.models.ranking.rank_model import CandidateFeatures, RankModel, rank_examples
from netclust.models.ranking.ranking_metrics import RankingScores, measure_rankings
from netclust.models.ranking.train_ranker import (
    ChosenRanking,
    RankSettings,
    choose_ranking,
    learn_ranking,
    measure_ranker,
)
from netclust.models.test_set_ledger import find_ledger, record_test_use
from netclust.options.output import (
    about,
    check_folders,
    check_not_input,
    check_outputs,
    cost_option,
    counted,
    echo,
    output_note,
    output_result,
    output_table,
    percent,
    progress,
    write_json,
    write_model_info,
    write_output,
)

if TYPE_CHECKING:
    from netclust.models.ranking.commands import FieldQueryOptions, QueryOptions


def _read(options: QueryOptions, path: str, model: RankModel | None = None, fields: list[str] | None = None) -> Queries:
    """Return the queries of a file with the fields that are asked for, or that a model needs."""
    columns = QueryColumns(options.query, options.label, options.id, options.question, options.answer)
    form: Any = options.format.value
    if model is not None and model.features.text is None:
        fields = list(model.features.fields)
    elif model is not None and form == "auto":
        form = "pairs"
    return read_queries(path, format=form, columns=columns, fields=fields)


def train_queries(
    queries: str,
    output: Path,
    options: FieldQueryOptions,
    learn: Any,
    dev: str | None,
    C: str,
    epochs: int,
    search: Any,
    seed: int,
    json: Path | None,
) -> None:
    """Read queries, describe candidates, choose C and epochs, learn, write the model."""
    check_folders(output, json)
    check_outputs(output, json)
    for given in (queries, *([] if dev is None else [dev])):
        check_not_input(given, output, json)
    settings = RankSettings(
        model=learn, C=1.0 if C == "cv" else cost_option(C), epochs=epochs, search=search, seed=seed
    )
    if dev is not None and C != "cv":
        raise InputError("--dev is for choosing C and epochs: leave --C out, or --dev")
    whole = _labelled(_read(options, queries, fields=options.fields), queries)
    used = whole.mixed()
    if not used.queries:
        raise InputError(f"{queries}: no query has both a right and a wrong candidate: there is no order to learn")
    joint = settings.model == "jsrc"
    with about(queries):
        features = CandidateFeatures.fit(used)
        examples = rank_examples(features, used, pairs=joint)
    output_note(
        f"{len(used.queries):,} of {len(whole.queries):,} queries have a right and a wrong candidate; "
        f"{len(features.fields)} features"
    )
    picked: ChosenRanking | None = None
    if C == "cv":
        held = None
        if dev is not None:
            held = rank_examples(features, _labelled(_read(options, dev, fields=options.fields), dev), pairs=joint)
        with progress("choosing C") as tick:
            picked = choose_ranking(settings, examples, held, epochs=epochs, on_progress=tick)
        settings = picked.settings
        tried = ", ".join(f"{t.C:g}{f' {t.start}' if joint else ''}: {percent(t.best[0])}" for t in picked.trials)
        output_note(f"C = {settings.C:g}, epochs = {settings.epochs}, by MAP of {picked.on} (C: best MAP: {tried})")
    start = time.perf_counter()
    w = learn_ranking(settings, examples)
    duration = time.perf_counter() - start
    provenance = Provenance.now(
        seed=settings.seed,
        data=Path(queries).name,
        sha256=whole.sha256,
        records=sum(map(len, used.queries)),
        params={"queries": len(used.queries), "options": msgspec.to_builtins(options)},
    )
    model = RankModel(settings=settings, features=features, w=w, provenance=provenance)
    model.save(output)
    scores = measure_ranker(settings, examples, w)
    body = {
        "queries": len(used.queries),
        "candidates": provenance.records,
        "settings": settings,
        "chosen": picked,
        "training_seconds": duration,
        "training": scores,
        "weights": dict(zip(model.names, w.tolist(), strict=True)),
    }
    if str(json) != "-":
        echo(f"{settings.model}: {counted(settings.epochs, 'epoch')} in {duration:.1f} s")
        echo(f"MAP of the training queries: {percent(scores.map)}")
        echo(f"wrote {output}")
        _print_weights(model)
    write_json(json, output_result(["train", "ranking"], body, seed=seed, data={Path(queries).name: whole.sha256}))


def rank_queries(queries: str, model_file: Path, output: Path, options: QueryOptions, json: Path | None) -> None:
    """Rank every query's candidates and write the orders."""
    check_folders(output, json)
    check_outputs(output, json)
    check_not_input(queries, output, json)
    check_not_input(str(model_file), output, json)
    if str(output) == str(json) == "-":
        raise InputError("rankings and JSON cannot both go to standard output: give one of them a file")
    model = RankModel.load(model_file)
    whole = _read(options, queries, model)
    with about(queries):
        found, scores = model.rank(whole), model.scores(whole)
    joint = model.settings.model == "jsrc"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", "rank", "candidate", "score", *(["cluster"] if joint else [])])
    for query, ranked, own in zip(whole.queries, found, scores, strict=True):
        for place, item in enumerate(ranked.order.tolist(), 1):
            cluster = [int(ranked.clusters[item])] if joint else []
            writer.writerow([query.name, place, query.ids[item], f"{own[item]:.6g}", *cluster])
    write_output(output, text.getvalue().encode())
    candidates = sum(map(len, whole.queries))
    if "-" not in (str(output), str(json)):
        echo(f"ranked {counted(candidates, 'candidate')} of {len(whole.queries):,} queries, wrote {output}")
    body: dict[str, Any] = {"queries": len(whole.queries), "candidates": candidates}
    if joint:
        body["clusters"] = sum(len(np.unique(ranked.clusters)) for ranked in found)
    write_json(json, output_result(["rank"], body, seed=None, data={Path(queries).name: whole.sha256}))


def evaluate_queries(model_file: Path, test: str, options: QueryOptions, json: Path | None) -> None:
    """Rank judged candidates and measure."""
    check_folders(json)
    model = RankModel.load(model_file)
    whole = _labelled(_read(options, test, model), test)
    with about(test):
        found = model.rank(whole)
    if record_test_use("evaluate ranking", whole.sha256, rows=1, draws=1):  # before anything is shown
        output_note(f"a look at a public test set: noted in {find_ledger()}")
    ranked = [
        query.labels[one.order] for query, one in zip(whole.queries, found, strict=True) if query.labels is not None
    ]
    scores, mixed = measure_rankings(ranked), measure_rankings(labels for labels in ranked if (labels == 0).any())
    if not scores.queries:
        raise InputError(f"{test}: no query has a right candidate: there is nothing to measure")
    if str(json) != "-":
        _print_scores(scores, mixed)
    body = {"scores": scores, "mixed": mixed, "settings": model.settings}
    write_json(
        json,
        output_result(["evaluate", "ranking"], body, seed=model.settings.seed, data={Path(test).name: whole.sha256}),
    )


def describe_rank_model(path: Path, json: Path | None, top: int) -> None:
    """Describe the file of a ranker."""
    model = RankModel.load(path)
    settings, origin = model.settings, model.provenance
    if str(json) != "-":
        echo(f"a model that ranks, {settings.model}: C {settings.C:g}, {counted(settings.epochs, 'epoch')}")
        echo(f"trained on {origin.data or '?'}: {counted(origin.records, 'candidate')}")
        _print_weights(model, top)
        echo(f"{path.stat().st_size:,} bytes")
    write_model_info(
        json,
        path,
        origin,
        task="ranking",
        settings=settings,
        weights=dict(zip(model.names, model.w.tolist(), strict=True)),
    )


def _labelled(whole: Queries, path: str) -> Queries:
    if any(query.labels is None for query in whole.queries):
        raise InputError(f"{path}: the candidates have no labels: name their column with --label")
    return whole


def _print_scores(scores: RankingScores, mixed: RankingScores) -> None:
    rows = [
        [name, one.queries, percent(one.map), percent(one.mrr), percent(one.p1)]
        for name, one in (("with a right candidate", scores), ("and a wrong one", mixed))
        if one.queries
    ]
    output_table("Rankings", ["queries", "", "MAP", "MRR", "P@1"], rows)
    if scores.skipped:
        echo(f"not measured, as they have no right candidate: {scores.skipped:,}")


def _print_weights(model: RankModel, top: int = 12) -> None:
    order = np.argsort(-np.abs(model.w))[:top]
    rows = [[model.names[n], f"{model.w[n]:+.4g}"] for n in order]
    if rows:
        output_table("Strongest weights: above 0 ranks higher", ["feature", "weight"], rows)

"""`netclust train correlation|kmeans`, `netclust cluster` and `netclust evaluate correlation|kmeans`."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from netclust.datasets.item_sets import ItemTable, read_items, sets_of
from netclust.datasets.set_splits import whole_cluster_sets
from netclust.datasets.simulators.synthetic_citations import citations, citations_csv
from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.metrics.clustering_metrics import measure_sets
from netclust.models.clustering.cluster_model import ClusterModel
from netclust.models.clustering.cluster_selection import ChosenClusterCost, choose_cost
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.models.clustering.train_clusterer import (
    ClusterSettings,
    Example,
    LearnedClustering,
    check_sizes,
    cluster_with,
    learn_clusterer,
)
from netclust.models.test_set_ledger import TEST_SETS, find_ledger, record_test_use
from netclust.options.output import (
    Reporter,
    about,
    check_folders,
    check_not_input,
    check_outputs,
    checksum_of,
    cost_option,
    counted,
    echo,
    origin_facts,
    output_note,
    output_result,
    output_table,
    progress,
    write_json,
    write_model_info,
    write_output,
)
from netclust.structures.pairs import PairFeatures

if TYPE_CHECKING:
    from netclust.models.clustering.commands import ClusterTrainingOptions, ItemOptions, LabelledItemOptions

MOSTLY = 0.2  # of a column: with fewer texts than this among its numbers, somebody may have meant numbers
SHOWN = (
    "delta_p",
    "delta_m",
    "rand",
    "pair_f1",
    "muc_f1",
    "b3_f1",
    "adjusted_rand",
    "nmi",
    "v_measure",
)


def train_items(
    items: str,
    output: Path,
    options: ItemOptions,
    chosen: dict[str, Any],
    training: ClusterTrainingOptions,
) -> None:
    """Read items, describe pairs, choose C, learn, write the model."""
    C, checkpoint, json = training.C, training.checkpoint, training.json
    check_folders(output, json, checkpoint)
    check_outputs(output, json, checkpoint)
    check_not_input(items, output, json, checkpoint)
    settings = ClusterSettings(
        **chosen, epsilon=training.epsilon, seed=training.seed, C=1.0 if C == "cv" else cost_option(C)
    )
    if checkpoint is not None and settings.learner in ("lsp", "lspa", "pairwise"):
        raise InputError(f"--checkpoint is for structural SVMs: {settings.learner} keeps no state")
    if options.label is not None and options.label in (options.set_column, *(options.fields or ())):
        raise InputError(
            f"{items}: column {options.label!r} is the cluster: it cannot be compared, or name the set as well"
        )
    whole = _read(items, options.label, options.set_column, options.id_column, options.fields)
    if whole.labels is None:
        folder = "put them into a folder a cluster" if Path(items).is_dir() else "name their column with --label"
        raise InputError(f"{items}: the items have no clusters to learn from: {folder}")
    sets = _cut(whole, options.set_size, settings.seed)
    with about(items):
        text = TextPairs.fit(_feature_spec(whole, options), sets)
        examples: list[Example] = [(text.build(part), part.clusters()) for part in sets]
        check_sizes(settings, examples)
        if C == "cv" and len(sets) < 2:
            raise InputError("C is chosen on held-out sets, and there is one set: give --C, or --set or --set-size")
    output_note(f"{counted(len(whole), 'item')} in {counted(len(sets), 'set')}, {len(text.names)} features a pair")
    output_note(
        f"compared as text: {', '.join(text.spec.fields) or '-'}; as numbers: {', '.join(text.spec.numbers) or '-'}"
    )
    picked: ChosenClusterCost | None = None
    if C == "cv":
        with progress("choosing C") as tick:
            picked = choose_cost(settings, examples, on_progress=tick)
        settings = msgspec.structs.replace(settings, C=picked.C)
        tried = ", ".join(f"{c:g}: {loss:.2f}" for c, loss in zip(picked.grid, picked.losses, strict=True))
        output_note(f"C = {picked.C:g}, by cross-validation over sets (C: held-out loss in percent: {tried})")
    start = time.perf_counter()
    learned = learn_clusterer(settings, examples, on_iteration=Reporter(), checkpoint=checkpoint, jobs=training.jobs)
    duration = time.perf_counter() - start
    checksum = checksum_of(items)
    provenance = Provenance.now(
        seed=settings.seed,
        data=Path(items).name,
        sha256=checksum,
        records=len(whole),
        params={"sets": len(sets), "options": msgspec.to_builtins(options)},
    )
    model = ClusterModel(settings=settings, features=text, w=learned.w, provenance=provenance)
    model.save(output)
    body = {
        "items": len(whole),
        "sets": len(sets),
        "settings": settings,
        "chosen": picked,
        "iterations": learned.iterations,
        "converged": learned.converged,
        "objective": learned.objective,
        "gap": learned.gap,
        "training_seconds": duration,
        "training": _measured(model.settings, examples, learned.w, k_is_known=settings.structure == "kmeans")[0],
        "weights": dict(zip(text.names, learned.w.tolist(), strict=True)),
    }
    if str(json) != "-":
        _print_trained(settings, learned, duration, output)
        _print_weights(model)
    if not learned.converged:
        output_note(_stopped(settings))
    if not learned.w.any():
        output_note("nothing was learned, all weights are 0: nothing in common, too small a C, or too large an epsilon")
    write_json(
        json, output_result(["train", _task(settings)], body, seed=settings.seed, data={Path(items).name: checksum})
    )


def cluster_items(
    items: str,
    model_file: Path,
    output: Path,
    set_column: str | None,
    id_column: str | None,
    k: int | None,
    json: Path | None,
) -> None:
    """Cluster every set and write who is with whom."""
    check_folders(output, json)
    check_outputs(output, json)
    check_not_input(items, output, json)
    check_not_input(str(model_file), output, json)
    if str(output) == str(json) == "-":
        raise InputError("clusters and JSON cannot both go to standard output: give one of them a file")
    model = ClusterModel.load(model_file)
    if k is not None and model.settings.structure != "kmeans":
        raise InputError("-k is for a model of k-means: other models choose the number of clusters themselves")
    whole = _read(items, None, set_column, id_column, _fields(model))
    sets = sets_of(whole)
    with about(items):
        found = [cluster_with(model.settings, _pairs(model, part), model.w, k) for part in sets]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    named = whole.sets is not None
    writer.writerow([*(["set"] if named else []), "item", "cluster"])
    for part, labels in zip(sets, found, strict=True):
        for n, label in enumerate(labels.tolist()):
            writer.writerow([*([part.sets[n]] if named and part.sets else []), part.ids[n], label])
    write_output(output, text.getvalue().encode())
    sizes = [np.bincount(labels) for labels in found]
    clusters = sum(map(len, sizes))
    if "-" not in (str(output), str(json)):
        largest = max((int(size.max()) for size in sizes if len(size)), default=0)
        made = f"{counted(clusters, 'cluster')}, the largest of {largest:,}"
        echo(f"{counted(len(whole), 'item')} in {counted(len(sets), 'set')}: {made}")
        echo(f"wrote {output}")
    body = {"items": len(whole), "sets": len(sets), "clusters": clusters, "settings": model.settings}
    write_json(
        json, output_result(["cluster"], body, seed=model.settings.seed, data={Path(items).name: checksum_of(items)})
    )


def evaluate_items(
    task: str,
    model_file: Path,
    test: str,
    options: LabelledItemOptions,
    predictor: str | None,
    k_is_known: bool | None,
    seed: int,
    json: Path | None,
) -> None:
    """Cluster labelled sets and print every measure."""
    check_folders(json)
    check_not_input(test, json)
    check_not_input(str(model_file), json)
    model = ClusterModel.load(model_file)
    if _task(model.settings) != task:
        raise InputError(f"{model_file}: is a model of {_task(model.settings)}, evaluate it with that")
    if predictor is not None and model.settings.structure in ("E", "K"):
        raise InputError(f"{model_file}: clusters by best links: --predictor is for the other structures")
    settings = model.settings if predictor is None else msgspec.structs.replace(model.settings, predictor=predictor)
    whole = _read(test, options.label, options.set_column, options.id_column, _fields(model))
    if whole.labels is None:
        raise InputError(f"{test}: the items have no true clusters: name their column with --label")
    checksum = checksum_of(test)
    if checksum == model.provenance.sha256:
        output_note("the model was trained on this very file: these numbers say nothing about new items")
    sets = _cut(whole, options.set_size, seed)
    with about(test):
        examples = [(_pairs(model, part), part.clusters()) for part in sets]
        measures, sizes = _measured(settings, examples, model.w, k_is_known=bool(k_is_known))
    if record_test_use(f"evaluate {task}", checksum, rows=1, draws=1):  # before anything is shown
        output_note(f"a look at {TEST_SETS[checksum]}: noted in {find_ledger()}")
    if str(json) != "-":
        rows = [[name, *_shown(name, measures[name])] for name in SHOWN]
        output_table(
            f"{counted(len(whole), 'item')} in {counted(len(sets), 'set')}", ["measure", "mean", "sd over sets"], rows
        )
        echo(
            f"clusters a set: {np.mean(sizes):.1f} found, {np.mean([len(set(p.labels or ())) for p in sets]):.1f} true"
        )
    body = {"items": len(whole), "sets": len(sets), "measures": measures, "settings": settings}
    write_json(json, output_result(["evaluate", task], body, seed=seed, data={Path(test).name: checksum}))


def simulate_citations(output: Path, sets: int, papers: int, seed: int) -> None:
    """Write made-up citations."""
    check_folders(output)
    rows = citations(sets=sets, papers=papers, seed=seed)
    write_output(output, citations_csv(rows).encode())
    output_note(f"{len(rows):,} citations of {sets * papers:,} papers in {counted(sets, 'set')}")


def describe_cluster_model(path: Path, json: Path | None, top: int) -> None:
    """Describe the file of a trained clusterer."""
    model = ClusterModel.load(path)
    origin, settings = model.provenance, model.settings
    if str(json) != "-":
        searched = settings.predictor or settings.oracle
        facts: list[list[Any]] = [
            ["task", _task(settings)],
            ["structure, learner", f"{settings.structure}, {settings.learner}"],
            ["trained for", f"the {settings.loss} loss, C = {settings.C:g}"],
            ["clusters by", searched if settings.structure in ("correlation", "kmeans") else "best links"],
            ["features a pair", len(model.w)],
            *origin_facts(origin, "items"),
        ]
        output_table(str(path), ["", ""], facts)
        _print_weights(model, top)
        echo(f"{path.stat().st_size:,} bytes")
    write_model_info(
        json,
        path,
        origin,
        task=_task(settings),
        settings=settings,
        weights=dict(zip(model.names, model.w.tolist(), strict=True)),
    )


def _feature_spec(whole: ItemTable, options: ItemOptions) -> TextFeatures:
    """Return the features of pairs: every field that is compared, as numbers where all its values are."""
    numbers = tuple(name for name in whole.fields if _is_numeric(name, whole))
    texts = tuple(name for name in whole.fields if name not in numbers and any(map(str.strip, whole.column(name))))
    words = tuple(options.words or ((1, 2) if texts else ()))
    return TextFeatures(fields=texts, words=words, characters=tuple(options.characters or ()), numbers=numbers)


def _is_numeric(name: str, whole: ItemTable) -> bool:
    present = [(text, item) for text, item in zip(whole.column(name), whole.ids, strict=True) if text.strip()]
    others = [text for text, _ in present if not _reads(text)]
    if others:
        if 0 < len(others) <= MOSTLY * len(present):
            output_note(
                f"column {name!r} is compared as text: {others[0]!r} is no number, most are; leave it empty if unknown"
            )
        return False
    finite = [bool(np.isfinite(float(text))) for text, _ in present]
    if any(finite) and not all(finite):
        text, item = present[finite.index(False)]
        raise InputError(f"item {item}: {name} is {text!r}, expected a number or nothing: other items have numbers")
    return any(finite)


def _reads(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fields(model: ClusterModel) -> list[str]:
    """Return the columns that a model compares."""
    spec = _text(model).spec
    return [*spec.fields, *spec.numbers]


def _read(
    path: str, label: str | None, set_column: str | None, id_column: str | None, fields: list[str] | None
) -> ItemTable:
    """Return the items, with the columns that were asked for, or that a model needs."""
    whole = read_items(path, label=label, set_column=set_column, id_column=id_column, fields=fields)
    if not len(whole):
        raise InputError(f"{path}: there are no items in it")
    return whole


def _cut(whole: ItemTable, set_size: str | None, seed: int) -> list[ItemTable]:
    """The sets of a table: those it names, or groups of whole clusters of the wanted size."""
    if set_size is None:
        return sets_of(whole)
    if whole.sets is not None:
        raise InputError("the items name their sets already: --set-size is for items that do not")
    low, dash, high = set_size.partition("-")
    if not (low.isdigit() and (high.isdigit() if dash else True)):
        raise InputError(f"--set-size {set_size!r}: give two numbers like 60-120")
    return [whole.rows(rows) for rows in whole_cluster_sets(whole.clusters(), int(low), int(high or low), seed)]


def _text(model: ClusterModel) -> TextPairs:
    if not isinstance(model.features, TextPairs):
        raise InputError("this model was trained on arrays from Python: use it there (netclust.ClusterModel)")
    return model.features


def _pairs(model: ClusterModel, part: ItemTable) -> PairFeatures:
    return _text(model).build(part)


def _measured(
    settings: ClusterSettings, examples: list[Example], w: Any, *, k_is_known: bool
) -> tuple[dict[str, Any], list[int]]:
    """Every measure over sets, and how many clusters were found; k-means may be told the true number."""
    found = [(y, cluster_with(settings, x, w, len(np.unique(y)) if k_is_known else None)) for x, y in examples]
    measures = {name: {"mean": s.mean, "sd": s.sd} for name, s in measure_sets(found).items()}
    return measures, [len(np.unique(z)) for _, z in found]


def _print_trained(settings: ClusterSettings, learned: LearnedClustering, duration: float, output: Path) -> None:
    gap = ""
    if learned.gap is not None and learned.objective:
        gap = f", objective {learned.objective:.4g}, within {100 * learned.gap / learned.objective:.2g} % of the best"
    echo(f"{settings.learner}: {counted(learned.iterations, 'iteration')} in {duration:.1f} s{gap}")
    echo(f"wrote {output}")


def _print_weights(model: ClusterModel, top: int = 12) -> None:
    order = np.argsort(-np.abs(model.w))[:top]
    rows = [[model.names[n], f"{model.w[n]:+.4g}"] for n in order]
    if rows:
        output_table("Strongest weights: above 0 speaks for one cluster", ["feature", "weight"], rows)


def _stopped(settings: ClusterSettings) -> str:
    if settings.learner in ("lsp", "lspa"):
        return "the training clusterings are not rebuilt without error: usual, unless they are separable"
    return f"stopped after {settings.max_iterations} iterations, before the stopping rule was met"


def _shown(name: str, value: dict[str, float | None]) -> list[str]:
    unit = " %" if name.startswith("delta") else ""
    digits = 2 if unit else 4
    return ["-" if v is None else f"{v:.{digits}f}{unit}" for v in (value["mean"], value["sd"])]


def _task(settings: ClusterSettings) -> str:
    return "kmeans" if settings.structure == "kmeans" else "correlation"

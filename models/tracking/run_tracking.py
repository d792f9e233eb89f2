"""`netclust profile`, `netclust track` and `netclust train tracking`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import msgspec

from netclust.datasets.candidate_pairs import CandidatePairs
from netclust.errors import InputError
from netclust.foundation.container import read_container_bytes
from netclust.linking.cluster_profiles import ClusterProfile, decode_profiles, encode_profiles, profile_clusters
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.run_structured import Given, train_task
from netclust.models.structured_model import StructuredModel
from netclust.models.tracking.cluster_tracking import TRACKING, Tracked, matched_pairs, track, tracking_windows
from netclust.options.output import (
    check_folders,
    check_not_input,
    check_outputs,
    checksum_of,
    counted,
    echo,
    login_name,
    output_note,
    output_result,
    output_table,
    write_json,
    write_output,
)
from netclust.records.labels import NOVEL_NAME
from netclust.records.table import Table, concat_tables
from netclust.scoring.model import Model
from netclust.stream.daemon.paths import store_path
from netclust.stream.sources.record_files import open_records
from netclust.stream.store.store import Store

MOST_BYTES = 1 << 28
NEIGHBOURS = 4
"""Windows up to so far apart are examples to learn from."""
SHOWN = 50


def run_profile_clusters(
    source: str, output: Path, model_file: Path | None, window: int, least: int, json: Path | None
) -> None:
    """Describe the clusters of a state folder, or of records that a model links."""
    check_folders(output, json)
    check_outputs(output, json)
    check_not_input(source, output, json)
    if model_file is None:
        found, schema = _from(source, least)
    else:
        model = Model.load(model_file)
        linker = Linker(model, LinkerConfig(referent_window=window))
        linker.process(model.encoding.encode(_records(source, model)))
        found, schema = profile_clusters(linker, least=least), model.encoding.schema.name
    write_output(output, encode_profiles(found, schema))
    if "-" not in (str(output), str(json)):
        echo(f"{counted(len(found), 'cluster')} of {least} records or more, wrote {output}")
    write_json(json, output_result(["profile"], {"clusters": len(found), "schema": schema}, seed=None, data={}))


def track_clusters(
    old: str,
    new: str,
    model_file: Path | None,
    limit: float,
    least: int,
    carry: bool,
    output: Path | None,
    json: Path | None,
) -> None:
    """Tell which clusters were there before; `carry` says again of them what people had said."""
    check_folders(output, json)
    check_outputs(output, json)
    for given in (old, new):
        check_not_input(given, output, json)
    if str(output) == str(json) == "-":
        raise InputError("pairs and JSON cannot both go to standard output: give one of them a file")
    if carry and not Path(new).is_dir():
        raise InputError(f"{new}: labels can be carried over to a daemon's state folder only")
    model = None if model_file is None else StructuredModel.load(model_file, "matching")
    (before, schema), (after, other) = _from(old, least), _from(new, least)
    if schema != other:
        raise InputError(f"{old} has clusters of schema {schema}, {new} of schema {other}: they cannot be compared")
    if model is None:
        output_note(
            "without --model clusters are compared by an unlearned distance: netclust train tracking learns one"
        )
    found = track(before, after, model, limit=limit)
    if output is not None:
        write_output(output, _csv(before, after, found))
    if "-" not in (str(output), str(json)):
        _show(before, after, found)
    carried = _carry(before, after, found, old, Path(new)) if carry else []
    if carry and str(json) != "-":
        echo(
            f"{counted(len(carried), 'label')} of attacks carried over: netclust label --list shows what comes of them"
        )
    body = {
        "carried": carried,
        "old": len(before),
        "new": len(after),
        "found": [each._asdict() for each in found],
        "model": None if model is None else msgspec.to_builtins(model.provenance),
        "limit": limit if model is None else None,
    }
    data = {Path(given).name: checksum_of(given) for given in (old, new) if Path(given).is_file()}
    write_json(json, output_result(["track"], body, seed=None, data=data))


def train_tracking(
    records: list[str],
    model_file: Path,
    output: Path,
    window: int,
    least: int,
    settings: dict[str, Any],
    C: str,
    json: Path | None,
) -> None:
    """Cut labelled records into windows, link each anew, and learn which clusters of two windows are of one class."""
    model = Model.load(model_file)

    def read() -> Given:
        windows = []
        for path in records:
            whole = _records(path, model)
            if not whole.has_labels:
                raise InputError(f"{path}: its records have no labels: which clusters are the same cannot be learned")
            windows += list(tracking_windows(model, whole, window, least=least))
        examples: list[CandidatePairs] = []
        for k, before in enumerate(windows):
            for after in windows[k + 1 : k + 1 + NEIGHBOURS]:
                pairs = matched_pairs(before, after, name=str(len(examples)))
                if pairs is not None:
                    examples.append(pairs)
        output_note(
            f"{counted(len(windows), 'window')} of {window:,} records, {counted(sum(map(len, examples)), 'pair')}"
        )
        if not examples:
            raise InputError(f"{records[0]}: no two windows have clusters of {least} records or more: take larger ones")
        return Given(examples, "window pair", {path: checksum_of(path) for path in records})

    train_task(TRACKING, read, [*records, str(model_file)], output, settings, C, json, folds=3)


def _from(source: str, least: int) -> tuple[list[ClusterProfile], str]:
    if Path(source).is_dir():
        from netclust.stream.daemon.state_profiles import profiles_of_state

        return profiles_of_state(Path(source), least=least)
    found, schema = decode_profiles(read_container_bytes(source, MOST_BYTES), source)
    return [one for one in found if one.records >= least], schema


def _records(path: str, model: Model) -> Table:
    tables = list(open_records(path, model.encoding.schema))
    if not tables:
        raise InputError(f"{path}: there are no records in it")
    return concat_tables(tables)


def _carry(
    before: list[ClusterProfile], after: list[ClusterProfile], found: list[Tracked], old: str, folder: Path
) -> list[int]:
    """Label what is found again as an attack if a person had; numbers of the labels. Normal is not carried over.

    Some identities are wrong: an attack that is taken for normal would be silenced, the other way round is seen.
    """
    past, now = ({profile.id: profile for profile in side} for side in (before, after))
    told = [each for each in found if past[each.old].label != NOVEL_NAME and not past[each.old].normal]
    with Store(store_path(folder), create=False) as store:
        return [
            store.add_label(
                f"cluster:{each.new}", f"attack:{past[each.old].label}", login_name(), f"cluster {each.old} of {old}"
            ).label_seq
            for each in told
            if now[each.new].label == NOVEL_NAME
        ]


def _csv(before: list[ClusterProfile], after: list[ClusterProfile], found: list[Tracked]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["new", "old", "score", "old_label", "old_records", "new_records"])
    of = {profile.id: profile for profile in before}
    was = {each.new: each for each in found}
    for one in after:
        if (each := was.get(one.id)) is None:
            writer.writerow([one.id, "", "", "", "", one.records])
        else:
            past = of[each.old]
            writer.writerow([one.id, past.id, f"{each.score:.6g}", past.label, past.records, one.records])
    return text.getvalue().encode()


def _show(before: list[ClusterProfile], after: list[ClusterProfile], found: list[Tracked]) -> None:
    old, new = ({profile.id: profile for profile in side} for side in (before, after))
    rows = [
        [each.new, each.old, old[each.old].label, old[each.old].records, new[each.new].records, f"{each.score:.2f}"]
        for each in found[:SHOWN]
    ]
    title = f"{counted(len(found), 'cluster')} found again"
    more = f" (the first {SHOWN} shown)" if len(found) > SHOWN else ""
    output_table(f"{title}{more}", ["cluster", "was", "label then", "records then", "now", "score"], rows)
    echo(f"{counted(len(after) - len(found), 'cluster')} not seen before, {len(before) - len(found):,} not seen again")

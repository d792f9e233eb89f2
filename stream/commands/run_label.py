"""`netclust label` and `netclust suppress`: what people tell the daemon, through its store."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.options.output import echo, login_name, output_note, output_result, output_table, write_json
from netclust.stream.daemon.paths import store_path
from netclust.stream.store.requests import SuppressionRule, iso, parse_until
from netclust.stream.store.store import Store
from netclust.stream.store.store_rows import LabelRow, SuppressionRow

PATIENCE = 3.0
"""Seconds that a label waits for a running daemon to say what came of it."""


def _open(folder: Path | None, *, read_only: bool = False) -> Store:
    return Store(store_path(folder), read_only=read_only, create=False)


def _when(store: Store) -> str:
    """From when on it counts."""
    if store.daemon() is not None:
        return "it counts from the daemon's next batch"
    return "no daemon seems to run here: it counts once one runs with this state folder"


def label(
    target: str | None,
    said: str | None,
    undo: int | None,
    show: bool,
    by: str | None,
    why: str,
    limit: int,
    json: Path | None,
    folder: Path | None,
) -> None:
    """Label something, take a label back, or show what was said."""
    asked = [target is not None, undo is not None, show]
    if sum(asked) != 1 or (said is None) != (target is None):
        raise InputError(
            "say what is what: netclust label ALERT|CLUSTER|RECORD normal|attack:NAME; or --undo SEQ, or --list"
        )
    if show:
        _list_labels(limit, json, folder)
        return
    with _open(folder) as store:
        who = login_name() if by is None else by
        if target is not None and said is not None:
            row = store.add_label(target, said, who, why)
        elif undo is not None:
            row = store.add_undo(undo, who, why)
        when = _when(store)
        row = _awaited(store, row)
    if row.status == "refused":
        raise InputError(f"label {row.label_seq} was refused: {row.reason}")
    if str(json) != "-":
        what = f"takes back label {row.target}" if row.target_kind == "undo" else f"{_about(row)} is {row.label}"
        done = f"it counts from record {row.from_tick} on" + (f" ({row.reason})" if row.reason else "")
        echo(f"Label {row.label_seq}: {what}; {done if row.status == 'applied' else when}.")
        if said == "normal":
            output_note(
                "this kind of traffic is normal now, whoever does it; for one host: netclust suppress add --source"
            )
    write_json(json, output_result(["label"], {"label": msgspec.to_builtins(row), "when": when}, seed=None, data={}))


def _awaited(store: Store, row: LabelRow) -> LabelRow:
    """What a running daemon made of a label, if that comes soon."""
    limit = time.monotonic() + (PATIENCE if store.daemon() is not None else 0.0)
    while row.status == "pending" and time.monotonic() < limit:
        time.sleep(0.05)
        row = store.labels(after=row.label_seq - 1, limit=1)[0]
    return row


def _list_labels(limit: int, json: Path | None, folder: Path | None) -> None:
    with _open(folder, read_only=True) as store:
        found = store.labels(limit=limit, newest=True)
    if str(json) != "-":
        if found:
            columns = ["label", "said", "by", "about", "as", "status", "from record", "covered", "why"]
            output_table("Labels, newest first", columns, [_label_cells(row) for row in found])
        else:
            echo("Nobody has labelled anything.")
    body = {"labels": [msgspec.to_builtins(row) for row in found]}
    write_json(json, output_result(["label"], body, seed=None, data={}))


def _about(row: LabelRow) -> str:
    return f"cluster:{row.target}" if row.target_kind == "cluster" else row.target


def _label_cells(row: LabelRow) -> list[str]:
    about = f"undo {row.target}" if row.target_kind == "undo" else _about(row)
    status = row.status if row.undone_by is None else f"{row.status}, undone by {row.undone_by}"
    if row.reason:
        status += f" ({row.reason})"
    ticks = ["-" if n is None else str(n) for n in (row.from_tick, row.covered)]
    return [str(row.label_seq), iso(row.created), row.by, about, row.label, status, *ticks, row.why]


def run_label_suppress(
    rule: SuppressionRule, until: str, reason: str, by: str | None, json: Path | None, folder: Path | None
) -> None:
    """Hide alerts that match."""
    with _open(folder) as store:
        end = parse_until(until, store.clock())
        row = store.add_suppression(rule, reason=reason, by=login_name() if by is None else by, until=end)
        when = _when(store)
        shown = row.shown(store.clock())
    if str(json) != "-":
        echo(f"{row.id} hides alerts with {sanitize(_rule(row))} {_until(row)}; {when}.")
        if until.strip() == "":
            output_note("it never ends: --until 8h would let it")
    write_json(json, output_result(["suppress", "add"], {"suppression": shown, "when": when}, seed=None, data={}))


def remove(ident: str, by: str | None, why: str, json: Path | None, folder: Path | None) -> None:
    """Let alerts be told again."""
    with _open(folder) as store:
        row = store.remove_suppression(ident, login_name() if by is None else by, why)
        when = _when(store)
        shown = row.shown(store.clock())
    if str(json) != "-":
        echo(f"{row.id} is removed; it has hidden {row.hidden:,}; {when}.")
    write_json(json, output_result(["suppress", "remove"], {"suppression": shown, "when": when}, seed=None, data={}))


def show_suppressions(everything: bool, json: Path | None, folder: Path | None) -> None:
    """The rules in the store; those of the configuration are in its file."""
    with _open(folder, read_only=True) as store:
        now = store.clock()
        found = store.suppressions(not everything, now)
    if str(json) != "-":
        if found:
            columns = ["id", "hides", "until", "by", "hidden", "state", "reason"]
            output_table("Suppressions", columns, [_cells(row, now) for row in found])
        else:
            echo("No suppressions." if everything else "No suppressions now: --all shows those that are over.")
    body = {"suppressions": [row.shown(now) for row in found]}
    write_json(json, output_result(["suppress", "list"], body, seed=None, data={}))


def _cells(row: SuppressionRow, now: int) -> list[str | int]:
    state = "active" if row.active(now) else "over" if row.removed_at is None else f"removed by {row.removed_by}"
    return [row.id, _rule(row), iso(row.until) or "for good", row.by, row.hidden, state, row.reason]


def _rule(row: SuppressionRow) -> str:
    given = [(name, getattr(row, name)) for name in SuppressionRule.__struct_fields__]
    return ", ".join(f"{name} {value}" for name, value in given if value not in ("", None))


def _until(row: SuppressionRow) -> str:
    return f"until {iso(row.until)}" if row.until >= 0 else "for good"

"""What people tell the daemon through the store: labels, their undoing, and suppressions.

Rows are written by the command line or over HTTP, and taken up by the daemon with its next batch: it says from which
arrival number they count, once, so that a run which is resumed comes to the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from netclust.errors import InputError
from netclust.stream.alerts.suppression import Suppression, suppression_of
from netclust.stream.config import SuppressConfig
from netclust.stream.store import store_audit as audit
from netclust.stream.store.requests import MAX_TEXT, MAX_WHO, SuppressionRule, check_text, parse_label, parse_target
from netclust.stream.store.store_rows import LabelRow, LabelStatus, SuppressionRow

MAX_PENDING = 100_000
"""Labels that no daemon took up yet: more are refused."""

MAX_ACTIVE = 10_000
"""Suppressions that are not removed: more are refused."""


ASKED_AT_ONCE = 500
"""Targets that are looked up by one statement."""


class NotFoundError(InputError):
    """There is no such alert, label or suppression."""


class Attribution(NamedTuple):
    """The author of a label or a rule, the reason, and the time."""

    by: str
    why: str
    now: int


def attribution(by: str, why: str, now: int, *, needs_why: str = "") -> Attribution:
    """Check who and why; `needs_why` is what the reason is called where there must be one."""
    who = check_text(by, "who says so (by)", MAX_WHO, needed=True)
    return Attribution(who, check_text(why, needs_why or "the reason (why)", MAX_TEXT, needed=bool(needs_why)), now)


def add_label(db: sqlite3.Connection, target: str, label: str, who: Attribution) -> LabelRow:
    """A label for what a person named; of an alert, the beginning of its id is enough."""
    about, label = parse_target(target), parse_label(label)
    text = full_alert_id(db, about.text) if about.kind == "alert" else about.text
    return _insert(db, about.kind, text, label, who)


def add_undo(db: sqlite3.Connection, label_seq: int, who: Attribution) -> LabelRow:
    """Take an earlier label back."""
    undone = label(db, label_seq)
    if undone.target_kind == "undo":
        raise InputError(f"label {label_seq} is itself an undo: label anew instead")
    if undone.undone_by is not None:
        raise InputError(f"label {label_seq} is already undone, by {undone.undone_by}")
    if undone.status == "refused":
        raise InputError(f"label {label_seq} was refused, there is nothing to undo: {undone.reason}")
    row = _insert(db, "undo", str(label_seq), undone.label, who)
    db.execute("UPDATE labels SET undone_by = ? WHERE label_seq = ?", (row.label_seq, label_seq))
    return row


def _insert(db: sqlite3.Connection, kind: str, target: str, label_text: str, who: Attribution) -> LabelRow:
    pending = db.execute("SELECT count(*) FROM labels WHERE status = 'pending'").fetchone()[0]
    if pending >= MAX_PENDING:
        raise InputError(f"{pending:,} labels wait for the daemon already: start it")
    sql = "INSERT INTO labels (created, target_kind, target, label, by, why) VALUES (?, ?, ?, ?, ?, ?)"
    seq = db.execute(sql, (who.now, kind, target, label_text, who.by, who.why)).lastrowid
    what = f"undo label {target}" if kind == "undo" else f"label {kind} {target} {label_text}"
    audit.add_audit(db, who.now, "label", what, by=who.by, why=who.why, result=f"label {seq}")
    return label(db, int(seq or 0))


def label(db: sqlite3.Connection, label_seq: int) -> LabelRow:
    """One label."""
    found = _labels(db, "WHERE label_seq = ?", (label_seq,))
    if not found:
        raise NotFoundError(f"there is no label {label_seq}: `netclust label --list` shows them")
    return found[0]


def feedback_labels(
    db: sqlite3.Connection, after: int, limit: int, *, newest: bool, status: LabelStatus | None
) -> list[LabelRow]:
    """Return labels behind a number, in the order in which they were said, or the newest first."""
    order = "DESC" if newest else "ASC"
    return _labels(
        db,
        f"WHERE label_seq > ? AND ? IN ('', status) ORDER BY label_seq {order} LIMIT ?",
        (after, status or "", limit),
    )


def labels_about(db: sqlite3.Connection, kind: str, target: str) -> list[LabelRow]:
    """What was said of one alert, cluster or record, newest first."""
    return _labels(db, "WHERE target_kind = ? AND target = ? ORDER BY label_seq DESC LIMIT 100", (kind, target))


def labels_of(
    db: sqlite3.Connection, alerts: Sequence[str], clusters: Sequence[int]
) -> dict[tuple[str, str], LabelRow]:
    """What is in force of what was said: the last label of each of these alerts and clusters, by kind and target."""
    found: dict[tuple[str, str], LabelRow] = {}
    for kind, targets in (("alert", list(alerts)), ("cluster", list(map(str, clusters)))):
        for start in range(0, len(targets), ASKED_AT_ONCE):
            some = targets[start : start + ASKED_AT_ONCE]
            where = f"WHERE target_kind = ? AND target IN ({', '.join('?' * len(some))})"
            rows = _labels(
                db,
                f"{where} AND undone_by IS NULL AND status <> 'refused' ORDER BY label_seq",
                (kind, *some),
            )
            found |= {(kind, row.target): row for row in rows}
    return found


def _labels(db: sqlite3.Connection, rest: str, values: tuple[Any, ...]) -> list[LabelRow]:
    return audit.fetch_audit(db, LabelRow, f"FROM labels {rest}", values, as_json=("linker_event", "effect"))


def label_result(
    db: sqlite3.Connection,
    label_seq: int,
    *,
    status: LabelStatus,
    reason: str,
    from_tick: int | None,
    covered: int | None,
    linker_event: Any,
    effect: Any = None,
    now: int,
) -> LabelRow:
    """What the daemon did with a label. The arrival number from which it counts never changes once it is said."""
    before = label(db, label_seq)
    event, changed = (
        None if attribution is None else msgspec.json.encode(attribution).decode()
        for attribution in (linker_event, effect)
    )
    db.execute(
        "UPDATE labels SET status = ?, reason = ?, from_tick = coalesce(from_tick, ?), covered = coalesce(?, covered), "
        "linker_event = coalesce(?, linker_event), effect = coalesce(?, effect) WHERE label_seq = ?",
        (status, reason, from_tick, covered, event, changed, label_seq),
    )
    after = label(db, label_seq)
    if before.target_kind == "undo" and status == "refused":
        db.execute("UPDATE labels SET undone_by = NULL WHERE undone_by = ?", (label_seq,))
    if before.status != after.status:
        facts = {"from_tick": after.from_tick, "covered": after.covered}
        result = f"{status}: {reason}" if reason else status
        audit.add_audit(db, now, "label", f"take up label {label_seq}", by="daemon", result=result, facts=facts)
    return after


def full_alert_id(db: sqlite3.Connection, start: str) -> str:
    """The one alert whose id begins so."""
    # What sorts between "a-1" and "a-1~" begins with it: ids have letters and digits alone.
    found = db.execute("SELECT id FROM alerts WHERE id >= ? AND id < ? LIMIT 3", (start, start + "~")).fetchall()
    ids = [row[0] for row in found]
    if start in ids or len(ids) == 1:
        return start if start in ids else str(ids[0])
    if ids:
        raise InputError(f"{start[:80]!r} is the beginning of several alerts ({', '.join(ids)}): give more of it")
    raise NotFoundError(f"there is no alert {start[:80]!r}: `netclust alerts --state all` lists them")


# Suppressions


def add_suppression(db: sqlite3.Connection, rule: Suppression, until: int, who: Attribution) -> SuppressionRow:
    """A rule that hides alerts; `say.why` is its reason."""
    if 0 <= until <= who.now:
        raise InputError("the suppression would be over before it begins: give a later end (--until)")
    active = db.execute(
        "SELECT count(*) FROM suppressions WHERE removed_at IS NULL AND (until < 0 OR until > ?)", (who.now,)
    ).fetchone()[0]
    if active >= MAX_ACTIVE:
        raise InputError(f"{active:,} suppressions already: remove some, or give a network instead of addresses")
    fields = {name: getattr(rule, name) for name in SuppressionRule.__struct_fields__}
    names = ", ".join(["created", "by", "reason", "until", *fields])
    values = (who.now, who.by, who.why, until, *fields.values())
    marks = ", ".join("?" * len(values))
    number = db.execute(f"INSERT INTO suppressions ({names}) VALUES ({marks})", values).lastrowid  # noqa: S608
    given = {name: value for name, value in fields.items() if value not in ("", None)}
    audit.add_audit(
        db, who.now, "suppression", f"suppress s-{number}", by=who.by, why=who.why, facts={**given, "until": until}
    )
    return _suppression(db, f"s-{number}")


def checked_rule(rule: SuppressionRule, reason: str) -> Suppression:
    """The rule as it is kept; refused where it matches everything, or nothing."""
    for name in ("label", "attribute"):
        check_text(getattr(rule, name), f"the {name}", MAX_TEXT)
    config = SuppressConfig(reason=reason, **msgspec.structs.asdict(rule))
    return suppression_of(config, "suppression", origin="people")


def remove_suppression(db: sqlite3.Connection, ident: str, who: Attribution) -> SuppressionRow:
    """Let alerts be told again."""
    found = _suppression(db, ident)
    if found.removed_at is not None:
        raise InputError(f"{ident} was removed already, by {found.removed_by}")
    db.execute(
        "UPDATE suppressions SET removed_at = ?, removed_by = ?, removed_why = ? WHERE number = ?",
        (who.now, who.by, who.why, found.number),
    )
    audit.add_audit(
        db, who.now, "suppression", f"remove {ident}", by=who.by, why=who.why, facts={"hidden": found.hidden}
    )
    return _suppression(db, ident)


def _suppression(db: sqlite3.Connection, ident: str) -> SuppressionRow:
    """Return one suppression."""
    number = ident.removeprefix("s-")
    if number.isdecimal() and number.isascii() and len(number) < 19:
        found = audit.fetch_audit(db, SuppressionRow, "FROM suppressions WHERE number = ?", (int(number),))
        if found:
            return found[0]
    raise NotFoundError(f"there is no suppression {ident[:40]!r}: `netclust suppress list` shows them")


def suppressions(db: sqlite3.Connection, now: int, *, active_only: bool, limit: int) -> list[SuppressionRow]:
    """The rules, oldest first; all that ever were, or those that hide something now."""
    rest = "FROM suppressions WHERE ? OR (removed_at IS NULL AND (until < 0 OR until > ?)) ORDER BY number LIMIT ?"
    return audit.fetch_audit(db, SuppressionRow, rest, (not active_only, now, limit))


def suppression_result(db: sqlite3.Connection, ident: str, from_tick: int) -> SuppressionRow:
    """From which arrival number on the rule counts, or, if it was removed, no longer counts. It is said once."""
    number = _suppression(db, ident).number
    db.execute(
        "UPDATE suppressions SET removed_tick = CASE WHEN removed_at IS NULL THEN NULL "
        "ELSE coalesce(removed_tick, ?1) END, "
        "from_tick = CASE WHEN removed_at IS NULL THEN coalesce(from_tick, ?1) ELSE from_tick END WHERE number = ?2",
        (from_tick, number),
    )
    return _suppression(db, ident)


def add_hidden(db: sqlite3.Connection, ident: str, count: int) -> None:
    """Count what a rule has hidden."""
    db.execute("UPDATE suppressions SET hidden = hidden + ? WHERE number = ?", (count, _suppression(db, ident).number))

"""`netclust snapshots` and `netclust rollback`: the models that a daemon has used, and going back to one."""

from __future__ import annotations

from pathlib import Path

from netclust.options.output import echo, login_name, output_table
from netclust.scoring.model import Model
from netclust.stream.daemon.decisions import ROLLBACK
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.daemon.paths import store_path
from netclust.stream.store.requests import iso
from netclust.stream.store.store import Store


def run_snapshots(folder: Path | None) -> None:
    """List them."""
    path = store_path(folder)
    with Store(path, read_only=True, create=False) as store:
        said = store.meta("daemon")
    used = said.get("model", "") if isinstance(said, dict) else ""
    rows = []
    for kept in ModelArchive(path.parent).list():
        model = Model.load(kept.path)
        now = "in use" if model.fingerprint == used else ""
        schema = model.encoding.schema.name
        rows.append([kept.fingerprint[:12], iso(int(kept.saved * 1e9)), len(model.reference), schema, now])
    output_table("Models that were in use, the newest first", ["model", "last used", "references", "schema", ""], rows)


def run_snapshots_rollback(fingerprint: str, by: str | None, why: str, folder: Path | None) -> None:
    """Ask the daemon to go on with an earlier model."""
    path = store_path(folder)
    model = ModelArchive(path.parent).load(fingerprint)
    with Store(path, create=False) as store:
        before = store.meta(ROLLBACK) or {"number": 0}
        asked = {"number": int(before["number"]) + 1, "fingerprint": model.fingerprint, "from_tick": None}
        store.set_meta(ROLLBACK, asked)
        who = by or login_name()
        store.add_audit("model", f"rollback to {model.fingerprint[:12]}", by=who, why=why, result="asked")
    echo(f"asked the daemon to go on with model {model.fingerprint[:12]} ({len(model.reference):,} references)")

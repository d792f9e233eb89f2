"""The models that a daemon has used: kept in its state folder, so that it can go back to any of them.

A model changes when the site was learned, when answers pin referents, and with every online update of the weights;
what was in force at a checkpoint is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from netclust.errors import InputError
from netclust.scoring.model import Model

KEPT = 64
_NAME = re.compile(r"model-([0-9a-f]{16})\.safetensors")


@dataclass(frozen=True)
class ArchivedModel:
    """A model file in the state folder."""

    fingerprint: str  # the beginning of it
    path: Path
    saved: float  # seconds since the epoch


class ModelArchive:
    """The archive of models in one state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, fingerprint: str) -> Path:
        """Where a model is, or would be."""
        return self.folder / f"model-{fingerprint[:16]}.safetensors"

    def save(self, model: Model) -> None:
        """Keep a model, if it is not kept already; the oldest beyond KEPT go."""
        path = self.path(model.fingerprint)
        if path.exists():
            path.touch()  # it is in use: others go first
            return
        model.save(path)
        for old in self.list()[KEPT:]:
            old.path.unlink(missing_ok=True)

    def list(self) -> list[ArchivedModel]:
        """The newest first."""
        found = []
        for path in self.folder.glob("model-*.safetensors"):
            match = _NAME.fullmatch(path.name)
            if match:
                found.append(ArchivedModel(match[1], path, path.stat().st_mtime))
        return sorted(found, key=lambda kept: -kept.saved)

    def load(self, fingerprint: str) -> Model:
        """A kept model, by the beginning of its fingerprint."""
        found = [kept for kept in self.list() if kept.fingerprint.startswith(fingerprint[:16].lower())]
        if len(found) != 1 or not fingerprint:
            what = "more than one kept model begins" if found else "no kept model begins"
            raise InputError(f"{what} with {fingerprint[:20]!r}: `netclust snapshots` lists them")
        return Model.load(found[0].path)

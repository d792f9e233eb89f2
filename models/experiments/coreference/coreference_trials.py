"""Trainings that are done, a line each in a file: what an experiment is made of, and what it goes on from.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     trials = Trials(Path(folder, "trials.jsonl"))
...     settings = CoreferenceSettings()
...     trials.add(CoreferenceTrial(split=0, model="LSP^E", stage="tune", settings=settings, curve=(70.0, 71.0)))
...     again = Trials(Path(folder, "trials.jsonl"))
...     again.has(0, "LSP^E", CoreferenceSettings(), "tune"), [trial.dev for trial in again]
(True, [71.0])
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from netclust.errors import InputError
from netclust.models.coreference.settings import CoreferenceSettings

__all__ = ["CoreferenceTrial", "Stage", "Trials"]

Stage = Literal["tune", "table"]

_LINE_START = b'{"split":'


class CoreferenceTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One training: `curve` is MELA on the development documents after every epoch, `test` the measures of the best."""

    split: int
    model: str
    stage: Stage
    settings: CoreferenceSettings
    curve: tuple[float, ...] = ()
    test: dict[str, float] = {}
    seconds: float = 0.0
    updates: int = 0
    converged: bool = True
    losses: tuple[float, ...] = ()

    @property
    def dev(self) -> float:
        """MELA of the best epoch on the development documents."""
        return max(self.curve, default=0.0)

    @property
    def epochs(self) -> int:
        """The best epoch, counted from 1."""
        return self.curve.index(self.dev) + 1 if self.curve else 0


class Trials:
    """The trainings of a file; several processes may add to it, each sees the others' after `reload`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: list[CoreferenceTrial] = []
        self.reload()
        self._drop_cut_line()

    def __iter__(self) -> Iterator[CoreferenceTrial]:
        """Every training, in the order in which they ended."""
        return iter(self._known)

    def has(self, split: int, model: str, settings: CoreferenceSettings, stage: Stage) -> bool:
        """Whether this training is done."""
        wanted = (split, model, settings, stage)
        return any((trial.split, trial.model, trial.settings, trial.stage) == wanted for trial in self._known)

    def add(self, trial: CoreferenceTrial) -> None:
        """Keep a training, in one write to the end of the file."""
        line = msgspec.json.encode(trial) + b"\n"
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                if os.write(file, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None
        self._known.append(trial)

    def reload(self) -> None:
        """Read the file anew; a last line that was cut short is a training that is not done."""
        self._known = []
        for number, line in enumerate(self._read().split(b"\n")[:-1], 1):
            try:
                self._known.append(msgspec.json.decode(line, type=CoreferenceTrial))
            except (msgspec.DecodeError, UnicodeDecodeError, InputError) as error:
                raise InputError(f"{self.path} line {number}: no training ({error}): remove the file") from None

    def _drop_cut_line(self) -> None:
        """So that what is added next does not go on in a line that a stopped run left unfinished."""
        content = self._read()
        end = content.rfind(b"\n") + 1
        cut = content[end : end + len(_LINE_START)]
        if not _LINE_START.startswith(cut):
            raise InputError(f"{self.path}: its last line is no training: name another file")
        if cut:
            try:
                os.truncate(self.path, end)
            except OSError as error:
                raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}") from None

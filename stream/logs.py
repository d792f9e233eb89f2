"""Structured logs on standard error: a line of text, or of JSON, an event. Nothing of a payload ever stands in one.

>>> import io
>>> out = io.StringIO()
>>> Log("json", "info", out).info("checkpoint written", bytes=12, seconds=0.5)
>>> import json
>>> line = json.loads(out.getvalue()); line["level"], line["message"], line["bytes"]
('info', 'checkpoint written', 12)
"""

from __future__ import annotations

import datetime
import sys
import threading
from typing import Any, Literal, TextIO

import msgspec

from netclust.foundation.text import sanitize

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
Format = Literal["text", "json"]


class Log:
    """Writes whole lines, from any thread."""

    def __init__(self, form: Format = "text", level: Level = "info", stream: TextIO | None = None) -> None:
        self.form: Format = form
        self.level: Level = level
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, level: Level, message: str, **facts: Any) -> None:
        """One line, unless it is beneath the level."""
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.form == "json":
            line = msgspec.json.encode(
                {"time": now, "level": level, "message": message, **facts}, enc_hook=str
            ).decode()
        else:
            more = " ".join(f"{name}={value}" for name, value in facts.items())
            line = sanitize(f"{now} {level:<7} {message}" + (f"  {more}" if more else ""))
        with self._lock:
            try:
                stream = self._stream or sys.stderr
                stream.write(line + "\n")
                stream.flush()
            except (OSError, ValueError):
                pass  # a log that cannot be written must not stop the watching

    def debug(self, message: str, **facts: Any) -> None:
        """For those who look for a bug."""
        self.write("debug", message, **facts)

    def info(self, message: str, **facts: Any) -> None:
        """What happens."""
        self.write("info", message, **facts)

    def warning(self, message: str, **facts: Any) -> None:
        """What somebody should look at."""
        self.write("warning", message, **facts)

    def error(self, message: str, **facts: Any) -> None:
        """What does not work."""
        self.write("error", message, **facts)

"""What commands print: rich tables on a terminal, plain aligned text when piped, and JSON results."""

from __future__ import annotations

import getpass
import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from netclust._version import __version__
from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.foundation.text import sanitize

if TYPE_CHECKING:
    from netclust.foundation.model_file import Provenance
    from netclust.records.table import TableReader
    from netclust.scoring.model import Model

STARTED = time.perf_counter()
REPORT_SECONDS = 2.0


def echo(text: str = "") -> None:
    """Print a line of output."""
    sys.stdout.write(text + "\n")


def output_note(text: str) -> None:
    """Print a line about the output, which does not belong to it."""
    sys.stderr.write(text + "\n")


def percent(fraction: float | None) -> str:
    """A fraction for people.

    >>> percent(0.8918), percent(None)
    ('89.18 %', '-')
    """
    return "-" if fraction is None else f"{100 * fraction:.2f} %"


def counted(number: int, noun: str) -> str:
    """A number with its noun, for people.

    >>> counted(1, "set"), counted(2000, "item")
    ('1 set', '2,000 items')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def output_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; numbers (and percentages) to the right."""
    title = sanitize(title)
    cells = [[f"{c:,}" if isinstance(c, int) else sanitize(str(c)) for c in row] for row in rows]
    right = [all(_is_number(row[i]) for row in cells) and bool(cells) for i in range(len(columns))]
    if sys.stdout.isatty():
        _rich_table(title, columns, cells, right)
        return
    widths = [max(len(x) for x in [columns[i], *(row[i] for row in cells)]) for i in range(len(columns))]
    echo(title)
    for row in [list(columns), *cells]:
        line = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        echo("  " + "  ".join(line).rstrip())
    echo()


def _is_number(text: str) -> bool:
    plain = text.replace(",", "").replace("%", "").replace(" ", "").lstrip("+-")
    return plain in ("", "inf") or plain.replace(".", "", 1).replace("e", "").replace("-", "").isdigit()


def _rich_table(title: str, columns: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(title=title, title_justify="left", title_style="bold")
    for name, to_the_right in zip(columns, right, strict=True):
        shown.add_column(name, justify="right" if to_the_right else "left")
    for row in cells:
        shown.add_row(*row)
    Console(markup=False, emoji=False, highlight=False).print(shown)  # names are not markup


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on the terminal (standard error); nothing at all when that is not one."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def output_result(
    command: Sequence[str], body: dict[str, Any], *, seed: int | None, data: dict[str, str]
) -> dict[str, Any]:
    """Return a JSON result: the body with the fields of every result. `data` maps file names to SHA-256 checksums."""
    return {
        **body,
        "version": __version__,
        "command": " ".join(command),
        "seed": seed,
        "data": data,
        "duration": time.perf_counter() - STARTED,
    }


def write_model_info(
    json: Path | None, model_file: Path, origin: Provenance, *, task: str, settings: Any, weights: Any
) -> None:
    """Write what `netclust info` knows of a model as JSON."""
    body = {
        "task": task,
        "settings": settings,
        "weights": weights,
        "provenance": origin,
        "bytes": model_file.stat().st_size,
    }
    write_json(json, output_result(["info"], body, seed=origin.seed, data={origin.data: origin.sha256}))


def origin_facts(origin: Provenance, noun: str) -> list[list[Any]]:
    """Return what `netclust info` says of where a model comes from, as rows of a table."""
    return [
        ["trained on", f"{origin.data or '?'} ({origin.records:,} {noun}, seed {origin.seed})"],
        ["sha256 of that", origin.sha256 or "?"],
        ["made", f"{origin.created} by netclust {origin.netclust}"],
    ]


def data_of(model: Model, given: str, reader: TableReader) -> dict[str, str]:
    """Return checksums by file. The file that was read comes last, so its checksum wins where both have one name."""
    return {model.provenance.data: model.provenance.sha256, Path(given).name: reader.sha256}


def report_skipped(reader: TableReader) -> None:
    """Print which lines or packets were skipped and why, and how many records were left out."""
    from netclust.records.table import LEFT_OUT

    skipped = Counter(reader.skipped)
    if left_out := skipped.pop(LEFT_OUT, 0):
        output_note(f"left out {counted(left_out, 'record')} because of their labels")
    if skipped:
        counts = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.items()))
        what = "lines" if reader.first_skipped else "packets"
        first = f", the first: {reader.first_skipped}" if reader.first_skipped else ""
        output_note(f"skipped {sum(skipped.values())} {what} ({counts}){first}")


def checksum_of(path: str) -> str:
    """SHA-256 of a file, or of a folder's files in order of their names."""
    digest = hashlib.sha256()
    root = Path(path)
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    for file in files:
        if root.is_dir():
            digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def check_folders(*files: Path | None) -> None:
    """Refuse an output file whose folder does not exist before the work is done, not after."""
    for file in files:
        if file is not None and str(file) != "-" and not file.absolute().parent.is_dir():
            raise InputError(f"{file}: cannot be written: there is no folder {file.parent}")
        if file is not None and file.is_dir():
            raise InputError(f"{file}: cannot be written: it is a folder, give the name of a file")


def check_not_input(given: str, *files: Path | None) -> None:
    """Refuse to write over what is read."""
    source = Path(given)
    for file in files:
        if file is not None and given != "-" and file.exists() and source.exists() and file.samefile(source):
            raise InputError(f"{file}: is the input, and would be overwritten: choose another name for the output")


def check_outputs(*files: Path | None) -> None:
    """Refuse to write two things to one file."""
    named = [file.absolute() for file in files if file is not None and str(file) != "-"]
    for file in named:
        if named.count(file) > 1:
            raise InputError(f"{file}: two outputs cannot go to one file: choose another name for one of them")


def write_json(path: Path | None, body: dict[str, Any]) -> None:
    """Write a result where it was asked for."""
    if path is None:
        return
    write_output(path, msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n")


@contextmanager
def about(path: str) -> Iterator[None]:
    """What is refused names the file."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(f"{path}: ") else f"{path}: {error}") from None


def cost_option(text: str) -> float:
    """Return the number of an option --C."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--C {text!r}: give a number, or cv to choose one by cross-validation") from None


def write_output(path: Path, content: bytes) -> None:
    """Write to a file, or to standard output."""
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_container_bytes(path, content)


def login_name() -> str:
    """Return the name of the person at the terminal: whoever called sudo, otherwise the user."""
    behind = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    try:
        return behind or getpass.getuser()
    except (KeyError, OSError):  # a container knows numbers alone
        return f"uid {os.getuid()}"


class Iteration(Protocol):
    """What a learner reports of an iteration."""

    @property
    def iteration(self) -> int:
        """Its number."""

    @property
    def planes(self) -> int:
        """Constraints in the working set."""

    @property
    def violation(self) -> float:
        """The mean violation at the weights that were tried."""

    @property
    def gap(self) -> float:
        """The duality gap."""

    @property
    def primal(self) -> float:
        """The best objective so far."""


class Reporter:
    """Says now and then how far training is."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def __call__(self, report: Iteration) -> None:
        """Hear of an iteration."""
        now = time.perf_counter()
        if now - self.last >= REPORT_SECONDS:
            self.last = now
            output_note(
                f"iteration {report.iteration}: {report.planes} constraints, violation {report.violation:.3f}, "
                f"duality gap {report.gap:.4g} of {report.primal:.4g}"
            )

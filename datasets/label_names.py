"""Which columns of a file are labels: by number as MEKA has it, by name, by prefix, or from Mulan's `.xml` beside it.

>>> pick_labels("some.csv", ("a", "b", "label:x", "label:y"), LabelChoice(prefix="label:"))
('label:x', 'label:y')
>>> pick_labels("some.csv", ("a", "b", "x", "y"), LabelChoice(number=-2))
('x', 'y')
>>> pick_labels("some.arff", ("x", "a", "b"), LabelChoice(), relation="flowers: -C 1")
('x',)
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from netclust.datasets.documents import decode_document, read_document_bytes
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.records.opening import STDIN

__all__ = ["MAX_LABELS", "LabelChoice", "find_label_file", "pick_labels", "read_label_names"]

MAX_LABELS = 10_000
_MAX_FILE = 4 << 20
_MEKA = re.compile(r"-C\s+(-?\d+)\b")
_PACKED = (".gz", ".xz", ".zst", ".zip")
_HOW = "say which columns are labels: by --labels (their names, or N for the first N and -N for the last N), --prefix \
or --label-file"


class LabelChoice(NamedTuple):
    """What the user says about it: one of these, or nothing."""

    number: int | None = None
    """N: the first N columns, -N: the last N."""
    names: tuple[str, ...] = ()
    prefix: str | None = None
    file: str | Path | None = None
    """Mulan's XML, or a text file with a name a line."""

    @classmethod
    def of(cls, labels: str | None, prefix: str | None = None, file: str | Path | None = None) -> LabelChoice:
        """From one text: a number, or names with commas.

        >>> LabelChoice.of("-6").number, LabelChoice.of("sea, sand").names
        (-6, ('sea', 'sand'))
        """
        if sum(given is not None for given in (labels, prefix, file)) > 1:
            raise InputError("labels, prefix and label file say the same thing: give one of them")
        if labels is None:
            return cls(prefix=prefix, file=file)
        if re.fullmatch(r"-?\d{1,9}", labels.strip()):
            return cls(number=int(labels))
        names = tuple(name.strip() for name in labels.split(","))
        if not all(names):
            raise InputError(f"labels {sanitize(labels)!r}: a number, or names with commas between them")
        return cls(names=names)


def pick_labels(path: str | Path, columns: Sequence[str], choice: LabelChoice, relation: str = "") -> tuple[str, ...]:
    """The names of the label columns; `relation` is ARFF's, in which MEKA writes `-C N`."""
    names = _chosen(path, columns, choice, relation)
    known = set(columns)
    for name in names:
        if name not in known:
            some = sanitize(", ".join(columns[-5:]))
            raise InputError(
                f"{path}: there is no column for the label {sanitize(name)!r}; the last columns are {some}"
            )
    if len(set(names)) < len(names):
        raise InputError(f"{path}: a label is named twice: {sanitize(', '.join(names))[:200]}")
    if len(names) > MAX_LABELS:
        raise InputError(f"{path}: {len(names):,} labels, more than {MAX_LABELS:,}")
    if len(names) == len(columns):
        raise InputError(f"{path}: every column is a label: no feature is left to tell them by")
    return names


def _chosen(path: str | Path, columns: Sequence[str], choice: LabelChoice, relation: str) -> tuple[str, ...]:
    if choice.names:
        return choice.names
    if choice.prefix is not None:
        found = tuple(name for name in columns if name.startswith(choice.prefix))
        if not found:
            raise InputError(f"{path}: no column begins with {sanitize(choice.prefix)!r}")
        return found
    if choice.file is not None:
        return read_label_names(choice.file)
    if choice.number is not None:
        return _counted(path, columns, choice.number)
    beside = find_label_file(path)
    if beside is not None:
        return read_label_names(beside)
    # Weka's filters keep the old name of a relation, and with it a -C that is true no more.
    told = _MEKA.search(relation)
    if told and "weka.filters" not in relation:
        return _counted(path, columns, int(told[1]))
    raise InputError(f"{path}: {_HOW}")


def _counted(path: str | Path, columns: Sequence[str], count: int) -> tuple[str, ...]:
    if not 0 < abs(count) < len(columns):
        raise InputError(f"{path}: {count} labels of {len(columns)} columns: there must be labels, and other columns")
    return tuple(columns[:count] if count > 0 else columns[count:])


def find_label_file(path: str | Path) -> Path | None:
    """Mulan's file of label names: for `scene-train.arff.xz` that is `scene-train.xml` or `scene.xml` beside it."""
    if str(path) == STDIN:
        return None
    name = Path(path).name
    while name.endswith(_PACKED):
        name = name.rpartition(".")[0]
    stem = name.rpartition(".")[0] or name
    short = re.sub(r"[-_.](train|test|dev|valid|validation)$", "", stem, flags=re.IGNORECASE)
    for candidate in dict.fromkeys((stem, short)):
        beside = Path(path).parent / f"{candidate}.xml"
        if beside.is_file():
            return beside
    return None


def read_label_names(path: str | Path) -> tuple[str, ...]:
    """The names in Mulan's XML (`<labels><label name="..."/>`, nested or not), or in a text file, one a line."""
    text = decode_document(read_document_bytes(path, _MAX_FILE))
    if not text.lstrip().startswith("<"):
        names = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    else:
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise InputError(f"{path}: label names need no DOCTYPE and no entities: take them out")
        try:
            root = ET.fromstring(text)  # noqa: S314 (without entities, and bounded)
        except (ET.ParseError, ValueError) as error:
            raise InputError(f"{path}: cannot be read as XML: {error}") from None
        names = [(one.get("name") or "").strip() for one in root.iter() if one.tag.rpartition("}")[2] == "label"]
    if not names or not all(names):
        raise InputError(f'{path}: no names of labels in it: <label name="..."> in XML, or a name a line')
    return tuple(names)

"""The ten splits of LitBank: 80 documents to learn from, 10 to choose by, 10 to test on.

The folder has `conll/*.conll` and `tenfold_splits/<number>/(train|dev|test).ids`, lists of names, one a line. See
Bamman, Lewke and Mansoor, An annotated dataset of coreference in English literature, LREC 2020.

>>> import tempfile
>>> from netclust.models.coreference.formats.writing import write_conll
>>> with tempfile.TemporaryDirectory() as folder:
...     for number, part in enumerate(("train", "dev", "test")):
...         ids = Path(folder, "tenfold_splits", "0", f"{part}.ids")
...         ids.parent.mkdir(parents=True, exist_ok=True)
...         _ = ids.write_text(f"{number}_novel_brat.tsv\\n")
...         Path(folder, "conll").mkdir(exist_ok=True)
...         novel = Document(f"{number}_novel_brat", ("The", "end"), (0, 2))
...         write_conll([novel], Path(folder, "conll", f"{number}_novel_brat.conll"))
...     split = read_split(folder, 0)
>>> [document.name for document in split.dev]
['1_novel_brat']
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from netclust.errors import InputError
from netclust.models.coreference.formats.conll import read_conll
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.formats.text_files import read_text

__all__ = ["SPLITS", "LitbankSplit", "read_split", "split_files"]

SPLITS = range(10)
_PARTS = ("train", "dev", "test")


class LitbankSplit(NamedTuple):
    """Documents to learn from, to choose by and to test on."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]


def read_split(folder: str | Path, number: int) -> LitbankSplit:
    """Read one split of the folder of LitBank."""
    return LitbankSplit(*(_documents(split_files(folder, number, part)) for part in _PARTS))


def split_files(folder: str | Path, number: int, part: str) -> list[Path]:
    """The files of one part (train, dev or test) of a split, in the order of its list."""
    if number not in SPLITS:
        raise InputError(f"LitBank has splits {SPLITS[0]} to {SPLITS[-1]}, there is no split {number}")
    if part not in _PARTS:
        raise InputError(f"a split of LitBank has the parts {', '.join(_PARTS)}, not {part!r}")
    ids = Path(folder, "tenfold_splits", str(number), f"{part}.ids")
    if not ids.is_file():
        raise InputError(f"{ids}: not found; name the folder of LitBank, which holds conll and tenfold_splits")
    files = []
    for line, text in enumerate(read_text(ids).splitlines(), start=1):
        if not text.strip():
            continue
        name = Path(text.strip()).name.removesuffix(".tsv").removesuffix(".conll")
        file = Path(folder, "conll", f"{name}.conll")
        if not file.is_file():
            raise InputError(f"{ids} line {line}: {file} is not there; the folder is not complete")
        files.append(file)
    if not files:
        raise InputError(f"{ids}: names no document")
    return files


def _documents(files: list[Path]) -> list[Document]:
    return [document for file in files for document in read_conll(file)]

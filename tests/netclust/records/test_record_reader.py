"""Reading records: what a plain parser reads, whatever the layout and the chunks, and an exact message otherwise."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import lzma
import math
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.kernels.jit import kernel
from netclust.kernels.packets import parse
from netclust.records import reader as records
from netclust.records.layout import Header
from netclust.records.reader import OnError, RecordReader, load_reader_kernels, read_table
from netclust.records.schema import Schema, load_schema, parse_schema
from netclust.records.table import Table


# Parts of kernels have no entry from Python: these are theirs.
@kernel
def parse_number(data: Any, start: int, end: int) -> Any:
    return parse.parse_number(data, start, end)


@kernel
def parse_iso_time(data: Any, start: int, end: int) -> Any:
    return parse.parse_iso_time(data, start, end)


EXAMPLES = 5000 if os.environ.get("NETCLUST_LONG") else 200
KDD = load_schema("kdd")
NAMES = [a.name for a in KDD.attributes]
LINES = list(simulate(300, seed=3).lines())
ROW = LINES[0].split(",")
QUOTES = '"' * 80

FLOWS = parse_schema("""
name = "flows"
delimiter = ";"
normal = ["benign"]
attribute = [
  {name = "ts", role = "time", unit = "ms"},
  {name = "src", role = "context"},
  {name = "dst", role = "key"},
  {name = "bytes", min = 0},
  {name = "proto", kind = "symbolic"},
  {name = "syn", kind = "binary"},
  {name = "class", role = "label", optional = true},
]
""")


def timed(unit: str, delimiter: str = ",") -> Schema:
    return parse_schema(
        f'name = "timed"\ndelimiter = "{delimiter}"\n'
        f'attribute = [{{name = "ts", role = "time", unit = "{unit}"}}, {{name = "x"}}]'
    )


def changed(**values: str) -> str:
    """The first row with some values replaced."""
    return ",".join(values.get(name, value) for name, value in zip(NAMES, ROW, strict=True))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somewhere to write what is to be read."""
    return tmp_path_factory.mktemp("records") / "records.txt"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def symbols(table: Table, name: str) -> list[str]:
    column = [a.name for a in table.schema.coded].index(name)
    return [table.symbols[column][i] for i in table.sym[:, column]]


def plain(table: Table) -> list[tuple[Any, ...]]:
    """Every record as Python values."""
    coded = [symbols(table, a.name) for a in table.schema.coded]
    columns: list[Sequence[Any]] = [table.num.tolist(), *coded, table.label_names().tolist(), table.time.tolist()]
    columns += [table.seq.tolist(), table.key.tolist(), *(c.tolist() for c in table.context.values())]
    return list(zip(*columns, strict=True))


@dataclass
class Outcome:
    """Everything that reading a file may tell."""

    rows: list[tuple[Any, ...]]
    error: str
    skipped: dict[str, int]
    first_skipped: str
    records: int
    sha256: str


def outcome(path: str | Path, schema: Schema, on_error: OnError = "stop", batch_rows: int = 8192) -> Outcome:
    reader = RecordReader(path, schema, batch_rows=batch_rows, on_error=on_error)
    rows: list[tuple[Any, ...]] = []
    error = ""
    try:
        for table in reader:
            assert 0 < len(table) <= batch_rows
            rows += plain(table)
    except InputError as complaint:
        error = str(complaint)
    assert [row[-2 - len(schema.context)] for row in rows] == list(range(len(rows)))
    return Outcome(rows, error, dict(reader.skipped), reader.first_skipped, reader.records, reader.sha256)


def refusal(path: Path, content: str | bytes, schema: Schema = KDD) -> str:
    """The complaint about a file, without its name."""
    with pytest.raises(InputError) as error:
        read_table(written(path, content), schema)
    assert str(error.value).startswith(str(path))
    return str(error.value).removeprefix(str(path))


def oracle(text: str, schema: Schema = KDD) -> list[tuple[list[float], list[str], str]]:
    """(numbers, coded, label) of every line, by the csv module and float(); columns in schema order."""
    found = []
    for raw in csv.reader(io.StringIO(text), delimiter=schema.delimiter, skipinitialspace=True):
        if not "".join(raw).strip():
            continue
        row = dict(zip([a.name for a in schema.attributes], (field.strip() for field in raw), strict=False))
        numbers = [float(row[a.name]) for a in schema.numeric]
        coded = [str(int(float(row[a.name]))) if a.kind == "binary" else row[a.name] for a in schema.coded]
        label = next((row.get(a.name, "") for a in schema.attributes if a.role == "label"), "")
        suffix = schema.label_suffix
        found.append((numbers, coded, label.removesuffix(suffix) if suffix else label))
    return found


def same_as_oracle(table: Table, text: str) -> bool:
    coded = [symbols(table, a.name) for a in table.schema.coded]
    got = list(zip(table.num.tolist(), map(list, zip(*coded, strict=True)), table.label_names().tolist(), strict=True))
    return got == oracle(text, table.schema)


# --- what is read equals what a plain parser reads


@pytest.mark.parametrize("seed", [0, 1])
def test_simulated_files_read_as_a_plain_parser_reads_them(file: Path, seed: int) -> None:
    stream = simulate(3000, seed=seed)
    text = "\n".join(stream.lines()) + "\n"
    table = read_table(written(file, text), KDD)
    assert same_as_oracle(table, text)
    assert np.array_equal(table.num, stream.table().num)
    assert table.has_labels
    assert (table.time == -1).all()
    assert table.seq.tolist() == list(range(3000))


ODD = {
    "spaces": changed(duration="  5 ", service="  http ", label=" smurf "),
    "quotes": changed(service='"http"', duration='"12"', label='"normal."'),
    "a comma in quotes": changed(service='"http, or so"'),
    "a quote in quotes": changed(service='"say ""http"" twice"'),
    "only a quote in quotes": changed(service='""""'),
    "doubled quotes and a comma": changed(service='"a"",""b"', flag='"c,""d"""'),
    "empty quotes": changed(service='""'),
    "exponents": changed(
        duration="1.5e3", src_bytes="2E2", dst_bytes="1e+4", count="5e-1", hot="0e999", urgent="1E-400"
    ),
    "signs and dots": changed(duration="+5", src_bytes="5.", dst_bytes=".5", count="-0", hot="00012.50"),
    "a dotted label": changed(label="smurf."),
    "only one dot of the label": changed(label="smurf.."),
    "a dot inside the label": changed(label="smurf.b"),
    "letters of other scripts": changed(service="σερβίς", label="нормально"),
    "41 columns": ",".join(ROW[:41]),
    "42 columns": ",".join(ROW[:42]),
    "43 columns": ",".join(ROW),
    "a trailing comma": ",".join(ROW[:42]) + ",",
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_rows_read_as_a_plain_parser_reads_them(file: Path, odd: str) -> None:
    for text in (ODD[odd], f"{LINES[1]}\n{ODD[odd]}\n{LINES[2]}\n"):
        assert same_as_oracle(read_table(written(file, text), KDD), text)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_blank_lines_change_nothing(file: Path, end: str, last: bool) -> None:
    lines = ["", "  ", LINES[0], "", "\t", *LINES[1:9], " \t "]
    text = end.join(lines) + (end if last else "")
    table = read_table(written(file, text), KDD)
    assert len(table) == 9
    assert same_as_oracle(table, "\n".join(LINES[:9]))


def test_a_mix_of_column_counts_keeps_every_label_in_its_row(file: Path) -> None:
    rows = [line.split(",")[: 41 + i % 3] for i, line in enumerate(LINES)]
    text = "\n".join(",".join(row) for row in rows)
    reader = RecordReader(written(file, text), KDD, batch_rows=7)
    labels = [name for table in reader for name in table.label_names().tolist()]
    assert labels == [row[41] if len(row) > 41 else "" for row in rows]


@pytest.mark.parametrize("missing", ["", "?", '""', "'?'"])
def test_a_missing_symbol_or_label_is_not_a_value(file: Path, missing: str) -> None:
    table = read_table(written(file, changed(service=missing, label=missing)), KDD)
    assert symbols(table, "service") == [""]
    assert table.label.tolist() == [0]
    assert not table.has_labels


def test_single_quotes_are_quotes_too(file: Path) -> None:
    table = read_table(written(file, changed(service="'http, it''s'", duration="'3'")), KDD)
    assert symbols(table, "service") == ["http, it's"]
    assert table.num[0, 0] == 3


def test_bytes_that_are_not_text_are_kept_apart_but_do_not_crash(file: Path) -> None:
    lines = [changed(service="@").encode().replace(b"@", value) for value in (b"\xff", b"\xfe\x00", b"\xc3(")]
    table = read_table(written(file, b"\n".join(lines)), KDD)
    assert table.sym[:, 1].tolist() == [1, 2, 3]
    assert symbols(table, "service")[0] == "\ufffd"


# --- headers


def test_a_byte_order_mark_is_not_part_of_the_first_value(file: Path) -> None:
    for first in ("", ",".join(NAMES) + "\n"):
        text = f"{first}{LINES[0]}\n{LINES[1]}\n"
        assert same_as_oracle(read_table(written(file, "\ufeff" + text), KDD), text.removeprefix(first))
    assert refusal(file, "\ufeff" + changed(duration="x")) == " line 1, column 1 (duration): 'x' is not a number"


@pytest.mark.parametrize("blank", ["", "\n", "  \n\n", "\r\n", "\ufeff\n"])
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_header_may_give_another_order_and_more_columns(file: Path, blank: str, quote: str) -> None:
    order = [*reversed(NAMES[:42]), "colour"]
    rows = [dict(zip(NAMES, line.split(","), strict=True), colour="x") for line in LINES[:20]]
    header = ", ".join(f"{quote}{name.upper()}{quote}" for name in order)
    text = blank + header + "\n" + "\n".join(",".join(row[name] for name in order) for row in rows)
    assert same_as_oracle(read_table(written(file, text), KDD), "\n".join(LINES[:20]))


def test_a_header_may_leave_out_what_is_not_scored_and_call_the_label_class(file: Path) -> None:
    unlabelled = "\n".join([",".join(NAMES[:41]), ",".join(ROW[:41])])
    table = read_table(written(file, unlabelled), KDD)
    assert table.labels == [""]
    assert table.label.tolist() == [0]
    named = "\n".join([",".join([*NAMES[:41], "Class"]), ",".join(ROW[:42])])
    assert read_table(written(file, named), KDD).label_names().tolist() == [ROW[41]]


def test_a_header_without_a_feature_or_with_one_twice_is_refused(file: Path) -> None:
    text = ",".join(n for n in NAMES if n not in ("flag", "hot"))
    assert refusal(file, text) == " header: no column flag, hot, which schema kdd needs"
    text = ",".join([*NAMES, "hot", "class", "hot"])
    assert refusal(file, text) == " header: columns named twice: hot, label"


def test_a_header_of_repeated_names_does_not_take_for_ever(file: Path) -> None:
    text = ",".join([*NAMES, *["label"] * 150_000])
    assert refusal(file, text) == " header: columns named twice: label"


def test_rows_under_a_header_have_exactly_its_columns(file: Path) -> None:
    header = ",".join([*NAMES, "colour"])
    assert refusal(file, f"{header}\n{LINES[0]}") == " line 2: 43 columns, schema kdd has 44"
    assert refusal(file, f"{header}\n{LINES[0]},a,b") == " line 2: 45 columns, schema kdd has 44"


@pytest.mark.parametrize("first", ["a\rb,c", "x" * 200_000, '"' * 999, "\x00", ",,,", "duration"])
def test_a_first_line_that_is_no_header_is_a_bad_row_and_not_a_crash(file: Path, first: str) -> None:
    assert refusal(file, f"{first}\n{LINES[0]}").startswith((" line 1: ", " header: no column "))
    if first != "duration":
        assert outcome(file, KDD, "skip").records == 1


def test_a_header_alone_holds_no_records(file: Path) -> None:
    assert refusal(file, ",".join(NAMES) + "\n") == ": no records"


# --- ARFF


def arff(rows: Sequence[str], names: Sequence[str] = NAMES[:42], data: str = "@data") -> str:
    attributes = "".join(f"@attribute {name} real\n" for name in names)
    return f"@relation 'KDD'\n{attributes}{data}\n" + "\n".join(rows)


def test_arff_reads_like_the_same_rows_without_a_header(file: Path) -> None:
    rows = [",".join(line.split(",")[:42]) for line in LINES[:20]]
    for content in (arff(rows), "\ufeff" + arff(rows), "\n \n" + arff(rows), arff(rows, data=" @DATA ")):
        assert same_as_oracle(read_table(written(file, content), KDD), "\n".join(rows))


def test_arff_with_quotes_comments_nominal_values_and_class(file: Path) -> None:
    kinds = ["real", "{'tcp','udp', 'icmp'}", "string", "{SF}"]
    attributes = [f"@ATTRIBUTE\t'{name}' {kinds[i % 4]}" for i, name in enumerate(NAMES[:41])]
    attributes[3] = "@attribute flag{SF,S0}"
    attributes[4] = '  @Attribute "src_bytes" numeric'
    rows = [",".join([f"'{value}'" if i % 2 else value for i, value in enumerate(ROW[:42])])] * 2
    lines = [
        "% made by hand",
        "@RELATION x",
        "",
        *attributes,
        "@attribute 'class' {normal,anomaly}",
        "% and now",
        "@Data",
    ]
    lines += ["% comment", rows[0], "", "   % another, one", rows[1], "%"]
    table = read_table(written(file, "\r\n".join(lines)), KDD)
    assert same_as_oracle(table, "\n".join([",".join(ROW[:42])] * 2))


def test_arff_lines_are_counted_from_the_top_of_the_file(file: Path) -> None:
    text = arff(["% comment", "", LINES[0].rsplit(",", 1)[0], changed(count="many").rsplit(",", 1)[0]])
    assert refusal(file, text) == " line 48, column 23 (count): 'many' is not a number"


def test_arff_without_data_says_so(file: Path) -> None:
    for text in ("@relation x", "% comment\n", arff([], data="@end"), "@relation x\n@attribute a real\n\n"):
        assert refusal(file, text) == ": an ARFF header without @data"


def test_an_arff_header_that_never_ends_is_refused(file: Path) -> None:
    assert refusal(file, "@relation x\n" + "% blah\n" * 400_000) == ": an ARFF header without @data"
    assert refusal(file, "@relation x\n" + "a" * 5_000_000) == f" line 2: longer than {1 << 20} bytes, not records"


@pytest.mark.parametrize("line", [b"% blah", b"@attribute a real", b"\xff" * 99], ids=["comment", "attribute", "noise"])
def test_an_arff_header_is_refused_at_a_mebibyte_though_more_of_it_comes(line: bytes) -> None:
    header = Header(KDD, "pipe")
    header.read(b"@relation x")
    fits = ((1 << 20) - len(b"@relation x\n")) // (len(line) + 1)
    for _ in range(fits):
        assert header.read(line) == (True, None)
    with pytest.raises(InputError, match=r"^pipe: an ARFF header without @data$"):
        header.read(line)


def test_a_long_arff_header_that_ends_within_a_mebibyte_is_read(file: Path) -> None:
    row = ",".join(LINES[0].split(",")[:42])
    assert same_as_oracle(read_table(written(file, "% blah\n" * 149_000 + arff([row])), KDD), row)


@pytest.mark.parametrize("between", ["", "\n", "% comment\n \n", "  "])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_sparse_arff_is_refused_by_its_name(
    file: Path, monkeypatch: pytest.MonkeyPatch, between: str, on_error: OnError
) -> None:
    content = written(file, arff([between + "{1 tcp, 4 181}"]))
    line = 45 + between.count("\n")
    for chunk in (1 << 20, 1, 7):
        monkeypatch.setattr(records, "CHUNK_BYTES", chunk)
        assert outcome(content, KDD, on_error).error == f"{file} line {line}: sparse ARFF is not read, save it as dense"


def test_a_brace_in_a_csv_file_is_only_a_brace(file: Path) -> None:
    schema = parse_schema('name = "t"\nattribute = [{name = "kind", kind = "symbolic"}]')
    assert symbols(read_table(written(file, "{1\n%2"), schema), "kind") == ["{1", "%2"]


# --- numbers


def parsed_number(text: str) -> float | None:
    data = np.frombuffer(text.encode(), np.uint8).copy()
    value, ok = parse_number(data, 0, len(data))
    return float(value) if ok else None


def close(value: float | None, expected: float) -> bool:
    return value is not None and abs(value - expected) <= max(1e-15 * abs(expected), 2e-323)


@pytest.mark.parametrize(
    "text",
    [
        "0", "-0", "1", "0.1", "123456789012345", "0.000001", "1e22", "1e-22", "1e23", "1e-300", "5e-324", "1e308",
        "9" * 18, "9" * 19, "9" * 300, "0." + "9" * 40, "1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e400",
        "0." + "0" * 20_000 + "7e20001", "0" * 50_000 + "12", "0e99999999999999999999", "0" + "." + "0" * 9999,
        "3.141592653589793238462643383279502884197", "1e-99999999999999999999", "4.9e-320", "1.00000000000E-320",
    ],
)  # fmt: skip
def test_numbers_mean_what_python_says(text: str) -> None:
    assert close(parsed_number(text), float(text))
    assert close(parsed_number("-" + text), -float(text)) or text.startswith("-")


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "+", ".", "e5", "1e", "1e+", "1e5x", "1.2.3", "--1", "1 2", "0x10", "1_000", "nan", "inf", "-inf",
        "1e309", "9" * 400, "1e99999999999999999999", "٣", "1,5", "1e1.5",
    ],
)  # fmt: skip
def test_what_is_not_a_finite_number_is_not_read_as_one(text: str) -> None:
    assert parsed_number(text) is None


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.floats(-1e308, 1e308), st.integers(0, 40))
def test_no_way_of_writing_a_number_changes_it(number: float, digits: int) -> None:
    for text in (repr(number), f"{number:.{digits}e}", f"{number:.{digits}f}", f"{number:+.17G}"):
        assert close(parsed_number(text), float(text))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-22, 0))
def test_numbers_of_15_digits_are_exact(digits: int, power: int) -> None:
    assert parsed_number(f"{digits}e{power}") == float(f"{digits}e{power}")
    assert parsed_number(f"{digits / 100:.2f}") == float(f"{digits / 100:.2f}")


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.from_regex(r"[-+]?[0-9]{0,30}\.?[0-9]{0,30}([eE][-+]?[0-9]{1,3})?", fullmatch=True))
def test_long_digit_strings_are_numbers_to_15_digits(text: str) -> None:
    try:
        expected = float(text)
    except ValueError:
        assert parsed_number(text) is None
    else:
        assert close(parsed_number(text), expected) or abs(expected) > 1.797e308


# --- bad values


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"duration": "abc"}, ", column 1 (duration): 'abc' is not a number"),
        ({"duration": ""}, ", column 1 (duration): '' is not a number"),
        ({"duration": "?"}, ", column 1 (duration): '?' is not a number"),
        ({"src_bytes": "1e999"}, ", column 5 (src_bytes): '1e999' is not a number"),
        ({"src_bytes": "nan"}, ", column 5 (src_bytes): 'nan' is not a number"),
        ({"src_bytes": '"1,5"'}, ", column 5 (src_bytes): '1,5' is not a number"),
        ({"src_bytes": "-1"}, ", column 5 (src_bytes): '-1' is outside 0 to inf"),
        ({"serror_rate": "1.01"}, ", column 25 (serror_rate): '1.01' is outside 0 to 1"),
        ({"land": "2"}, ", column 7 (land): '2' is outside 0 to 1"),
        ({"land": "0.5"}, ", column 7 (land): '0.5' is neither 0 nor 1"),
        ({"land": "yes"}, ", column 7 (land): 'yes' is not a number"),
        ({"hot": "\x1b[2J"}, ", column 10 (hot): '\\x1b[2J' is not a number"),
        ({"hot": "9" * 400}, f", column 10 (hot): '{'9' * 80}' is not a number"),
        ({"service": "s" * 256}, f", column 3 (service): '{'s' * 80}' ... is longer than 255 bytes"),
        ({"label": "l" * 257}, f", column 42 (label): '{'l' * 80}' ... is longer than 255 bytes"),
        ({"service": '"' + '""' * 256 + '"'}, f", column 3 (service): {QUOTES!r} ... is longer than 255 bytes"),
        ({"service": "a,b"}, ": 44 columns, schema kdd has 41 to 43"),
        ({"duration": "x", "service": "a,b"}, ": 44 columns, schema kdd has 41 to 43"),
    ],
)
def test_a_bad_value_is_named_with_file_line_column_and_value(
    file: Path, values: dict[str, str], complaint: str
) -> None:
    for before, line in (([], 1), ([LINES[1]], 2), (["", LINES[1], "  ", "", LINES[2]], 6)):
        assert refusal(file, "\n".join([*before, changed(**values), LINES[3]])) == f" line {line}{complaint}"


def test_symbols_as_long_as_allowed_are_read(file: Path) -> None:
    long, quotes = "s" * 255, '"' + '""' * 255 + '"'
    table = read_table(written(file, changed(service=long, flag=quotes, label="l" * 255 + ".")), KDD)
    assert symbols(table, "service") == [long]
    assert symbols(table, "flag") == ['"' * 255]
    assert table.label_names().tolist() == ["l" * 255]


@pytest.mark.parametrize(
    ("line", "found"),
    [(",".join(ROW[:40]), 40), (LINES[0] + ",", 44), ("x", 1), (",", 2), ('"' + LINES[0], 1), ("1;2", 1)],
)
def test_a_wrong_number_of_columns_is_said(file: Path, line: str, found: int) -> None:
    text = f"{LINES[1]}\n{line}\n{LINES[2]}\n"
    assert refusal(file, text) == f" line 2: {found} columns, schema kdd has 41 to 43"


def test_skipped_lines_are_counted_by_reason_and_the_first_is_told(file: Path) -> None:
    bad = [
        changed(duration="x"), changed(land="0.5"), changed(land="3"), changed(count="-1"), "too,few",
        changed(label="l" * 300), changed(hot="y"),
    ]  # fmt: skip
    lines = ["", *[line for pair in zip(bad, LINES, strict=False) for line in pair], ""]
    reader = RecordReader(written(file, "\n".join(lines)), KDD, on_error="skip", batch_rows=4)
    tables = list(reader)
    assert [len(table) for table in tables] == [4, 3], "bad lines do not cut batches short"
    assert reader.skipped == {"not_a_number": 2, "not_integer": 1, "out_of_range": 2, "columns": 1, "too_long": 1}
    assert reader.first_skipped == f"{file} line 2, column 1 (duration): 'x' is not a number"
    assert reader.records == 7
    assert [name for t in tables for name in symbols(t, "service")] == [line.split(",")[2] for line in LINES[:7]]


def test_records_before_a_bad_line_still_come(file: Path) -> None:
    got = outcome(written(file, "\n".join([*LINES[:9], "bad", *LINES[9:]])), KDD, batch_rows=4)
    assert (len(got.rows), got.records) == (9, 9)
    assert got.error == f"{file} line 10: 1 columns, schema kdd has 41 to 43"


def test_a_reader_can_be_used_again(file: Path) -> None:
    reader = RecordReader(written(file, "\n".join(["bad", *LINES])), KDD, on_error="skip")
    first = [plain(table) for table in reader]
    assert [plain(table) for table in reader] == first
    assert (reader.records, reader.skipped) == (300, {"columns": 1})
    assert reader.first_skipped.startswith(f"{file} line 1: ")


@pytest.mark.parametrize("content", [b"", b"\n", b"  \r\n\n \t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
def test_an_empty_file_is_said_to_be_empty(file: Path, content: bytes) -> None:
    for pack in (bytes, gzip.compress, lzma.compress):
        assert refusal(file, pack(content)) == ": no records"


def test_a_file_of_bad_lines_says_what_is_wrong_with_the_first(file: Path) -> None:
    got = outcome(written(file, "a\nb\n\nc\n"), KDD, "skip")
    why = f"{file} line 1: 1 columns, schema kdd has 41 to 43"
    assert got.error == f"{file}: no records, 3 bad lines, the first: {why}"
    assert got.skipped == {"columns": 3}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_an_endless_line_is_refused_wherever_it_begins(file: Path, on_error: OnError) -> None:
    for before in ([], LINES[:5], ["", ""]):
        got = outcome(written(file, "\n".join([*before, "0" * 3_000_000])), KDD, on_error)
        assert got.error == f"{file} line {len(before) + 1}: longer than 1048576 bytes, not records"
    if os.path.exists("/dev/zero"):
        assert outcome("/dev/zero", KDD, on_error).error == "/dev/zero line 1: longer than 1048576 bytes, not records"


def test_the_longest_line_does_not_depend_on_where_chunks_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = len(LINES[0])
    monkeypatch.setattr(records, "MAX_LINE_BYTES", longest)
    for chunk in (1, 10, longest, longest + 1, 3 * longest, 10_000):
        monkeypatch.setattr(records, "CHUNK_BYTES", chunk)
        for end in ("\n", ""):
            written(file, f"{LINES[0]}\n{LINES[0]}{end}")
            assert outcome(file, KDD).records == 2
            written(file, f"{LINES[0]}\n{LINES[0]} {end}")
            got = outcome(file, KDD)
            assert got.records == 1
            assert got.error == f"{file} line 2: longer than {longest} bytes, not records"


def test_a_batch_without_rows_is_refused_and_does_not_hang() -> None:
    with pytest.raises(InputError, match="a batch has at least 1 row"):
        RecordReader("-", KDD, batch_rows=0)


# --- symbols


def many_symbols(n: int, width: int = 1) -> str:
    rows = (changed(service=f"{i}{'s' * width}", flag=f"f{i % 7}", label=f"l{i // 2}") for i in range(n))
    return "\n".join(rows)


@pytest.mark.parametrize(("n", "width"), [(5000, 1), (600, 240)])
def test_thousands_of_symbols_keep_their_names(file: Path, n: int, width: int) -> None:
    text = many_symbols(n, width)
    assert same_as_oracle(read_table(written(file, text), KDD), text)
    reader = RecordReader(file, KDD, batch_rows=100)
    assert [name for table in reader for name in symbols(table, "service")] == [f"{i}{'s' * width}" for i in range(n)]


def test_too_many_symbols_become_missing_and_not_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_VALUES", 5)
    table = read_table(written(file, many_symbols(12) + "\n" + many_symbols(2)), KDD)
    assert table.sym[:, 1].tolist() == [1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert table.label.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 1, 1]
    assert symbols(table, "service")[4:7] == ["4s", "", ""]


# --- batches and chunks


@pytest.mark.parametrize("batch_rows", [1, 7, 300, 301])
def test_batches_are_bounded_and_lose_nothing(file: Path, batch_rows: int) -> None:
    whole = plain(read_table(written(file, "\n".join(LINES)), KDD))
    assert outcome(file, KDD, batch_rows=batch_rows).rows == whole


FLOW_LINES = [
    "1700000000123;10.0.0.1;10.0.0.2;12;tcp;1;benign",
    "1700000000124.5;;10.0.0.3;1e3;udp;0",
    '1700000000125;"a;b";"say ""x""";7;"t;c""p";1;worm',
    "1; x ;y ; 3 ;icmp; 0 ; benign ",
    "", "  ", "\r", "5;a;b;c;tcp;1", "5;a;b;1;tcp;2", "5;a;b;1;tcp;0.5", "5;a;b;-1;tcp;1", "x;a;b;1;tcp;1", "5;a;b",
    "5;a;b;1;tcp;1;benign;", "5;a;b;1;" + "p" * 300 + ";1", '"5;a;b;1;tcp;1',
]  # fmt: skip
FLOW_HEADERS = [
    "",
    "ts;src;dst;bytes;proto;syn\n",
    "\n\nsyn;bytes;proto;class;extra;ts\n",
    "\ufeffclass;proto;bytes;syn\n",
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    lines=st.lists(st.sampled_from(FLOW_LINES), max_size=12),
    header=st.sampled_from(FLOW_HEADERS),
    last=st.sampled_from(["", "\n", "\r\n"]),
    chunk=st.integers(1, 120),
    longest=st.sampled_from([60, 400]),
    on_error=st.sampled_from(["stop", "skip"]),
    batch_rows=st.integers(1, 5),
)
@example(FLOW_LINES, "", "", 1, 400, "skip", 2)
@example(FLOW_LINES, "", "\n", 64, 60, "skip", 3)
def test_the_result_does_not_depend_on_where_chunks_end(
    file: Path, lines: list[str], header: str, last: str, chunk: int, longest: int, on_error: OnError, batch_rows: int
) -> None:
    written(file, header + "\n".join(lines) + last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "MAX_LINE_BYTES", longest)
        whole = outcome(file, FLOWS, on_error)
        patch.setattr(records, "CHUNK_BYTES", chunk)
        assert outcome(file, FLOWS, on_error, batch_rows) == whole


@pytest.mark.parametrize("chunk", [1, 2, 3, 50, 211, 1000])
def test_kdd_and_arff_files_do_not_depend_on_where_chunks_end(
    file: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    rows = [",".join(line.split(",")[:42]) for line in LINES[:20]]
    bad = [*rows[:7], "bad", "", *rows[7:], changed(hot="x")]
    for lines in (rows, bad):
        for text in ("\n".join(lines), "\ufeff" + ",".join(NAMES[:42]) + "\r\n" + "\r\n".join(lines), arff(lines)):
            for on_error in ("stop", "skip"):
                written(file, text)
                monkeypatch.setattr(records, "CHUNK_BYTES", 1 << 20)
                whole = outcome(file, KDD, on_error)
                monkeypatch.setattr(records, "CHUNK_BYTES", chunk)
                assert outcome(file, KDD, on_error) == whole
                assert whole.records > 0


def test_line_numbers_are_right_across_chunks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for good in LINES[:40] for line in (good, "", "bad")]
    written(file, "\n".join([*lines, changed(hot="x")]))
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 500)
    for chunk in range(1, 700, 37):
        monkeypatch.setattr(records, "CHUNK_BYTES", chunk)
        assert outcome(file, KDD).error == f"{file} line 3: 1 columns, schema kdd has 41 to 43"
        got = outcome(file, KDD, "skip")
        assert got.skipped == {"columns": 40, "not_a_number": 1}
    lines = [line for good in LINES[:40] for line in (good, "")]
    written(file, "\n".join([*lines, changed(hot="x")]))
    for chunk in range(1, 700, 37):
        monkeypatch.setattr(records, "CHUNK_BYTES", chunk)
        assert outcome(file, KDD).error == f"{file} line 81, column 10 (hot): 'x' is not a number"


# --- where the bytes come from


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as sink:
        sink.writestr("records.txt", content)
    return archive.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zip": zipped,
}


@pytest.mark.parametrize("form", PACKERS)
def test_packed_files_and_standard_input_give_the_same_records(
    file: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    content = ("\n".join(LINES) + "\n").encode()
    whole = outcome(written(file, content), KDD)
    assert whole.sha256 == hashlib.sha256(content).hexdigest()
    packed = PACKERS[form](content)
    assert outcome(written(file, packed), KDD) == whole
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(packed))))
    assert outcome("-", KDD) == whole


def test_standard_input_is_named_in_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "\n".join([LINES[0], "bad"]).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content))))
    assert outcome("-", KDD).error == "- line 2: 1 columns, schema kdd has 41 to 43"


@pytest.mark.parametrize("form", ["gz", "xz", "zip"])
def test_a_cut_or_corrupt_file_gives_no_checksum(file: Path, form: str) -> None:
    packed = PACKERS[form](("\n".join(LINES) + "\n").encode())
    corrupt = bytearray(packed)
    corrupt[len(packed) // 2] ^= 0x55
    for content in (packed[: len(packed) // 2], bytes(corrupt)):
        got = outcome(written(file, content), KDD, "skip")
        assert got.error.startswith(f"{file}: cannot be unpacked, it is cut short or corrupt (")
        assert got.sha256 == ""


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert outcome(tmp_path / "absent", KDD).error == f"{tmp_path}/absent: No such file or directory"
    assert outcome(tmp_path, KDD).error == f"{tmp_path}: Is a directory"


def test_the_kernels_can_be_loaded_before_the_first_record() -> None:
    load_reader_kernels(KDD)
    load_reader_kernels(FLOWS)


# --- another schema, no code


def test_another_schema_carries_its_context_key_and_time(file: Path) -> None:
    text = "syn;CLASS;dst;src;bytes;proto;ts;colour\n" + "".join(
        f"{i % 2};{'worm' if i % 3 else 'benign'};10.0.0.{i};192.168.0.{i};{i * 100};tcp;{i}.25;x\n" for i in range(20)
    )
    table = read_table(written(file, text), FLOWS)
    assert table.time.tolist() == [i * 1_000_000 + 250_000 for i in range(20)]
    assert table.context["src"].tolist() == [f"192.168.0.{i}" for i in range(20)]
    assert table.context["dst"].tolist() == [f"10.0.0.{i}" for i in range(20)]
    assert list(table.context) == ["src", "dst"]
    assert table.num[:, 0].tolist() == [i * 100 for i in range(20)]
    assert symbols(table, "syn") == [str(i % 2) for i in range(20)]
    assert table.label_names().tolist() == ["worm" if i % 3 else "benign" for i in range(20)]


def test_the_key_of_a_record_does_not_depend_on_where_it_comes_from(file: Path) -> None:
    keys = ["10.0.0.1", "", "é", "10.0.0.1", "x y"]
    table = read_table(written(file, "".join(f"1;a;{key};1;tcp;1\n" for key in keys)), FLOWS)
    columns = {"ts": [1] * 5, "src": ["a"] * 5, "dst": keys, "bytes": [1] * 5, "proto": ["tcp"] * 5, "syn": [1] * 5}
    assert table.key.tolist() == Table.from_columns(FLOWS, columns).key.tolist()
    assert len(set(table.key.tolist())) == 4


def test_an_absent_optional_column_keeps_nothing_of_the_record_before(file: Path) -> None:
    schema = parse_schema("""
    name = "t"
    attribute = [
      {name = "x"}, {name = "ts", role = "time", optional = true}, {name = "who", role = "key", optional = true},
      {name = "note", role = "context", optional = true}, {name = "y", role = "label", optional = true},
    ]
    """)
    table = read_table(written(file, "1,2,a,b,c\n2\n3,4\n5,6,a\n"), schema)
    assert table.time.tolist() == [2 * 10**9, -1, 4 * 10**9, 6 * 10**9]
    assert table.context["note"].tolist() == ["b", "", "", ""]
    assert table.context["who"].tolist() == ["a", "", "", "a"]
    assert table.label_names().tolist() == ["c", "", "", ""]
    again = outcome(file, schema, batch_rows=1)
    assert again.rows == plain(table)
    assert table.key[0] == table.key[3] != 0
    assert table.key[1:3].tolist() == [0, 0]


def test_quoted_context_is_unquoted(file: Path) -> None:
    lines = ['1;"a;b";"say ""x""";1;tcp;1', "1;'it''s';\"it's\";1;tcp;1", '1; "" ;a""b;1;tcp;1', '1;"é""";x;1;tcp;1']
    table = read_table(written(file, "\n".join(lines)), FLOWS)
    assert table.context["src"].tolist() == ["a;b", "it's", "", 'é"']
    assert table.context["dst"].tolist() == ['say "x"', "it's", 'a""b', "x"]


@pytest.mark.parametrize(("delimiter", "name"), [("\t", "\\t"), ("|", "|"), (" ", " "), (";", ";")])
def test_other_delimiters_work_and_empty_fields_stay(file: Path, delimiter: str, name: str) -> None:
    schema = parse_schema(
        f'name = "t"\ndelimiter = "{name}"\n'
        'attribute = [{name = "a", kind = "symbolic"}, {name = "x"}, {name = "b", kind = "symbolic"}]'
    )
    rows = [["", "1", "q"], ["p", "2", ""], ['"1,5"', "3", f'"a{delimiter}b"'], ["", "4", "r"]]
    for header in ([], [["b", "x", "a"]]):
        lines = [*header, *([row[::-1] for row in rows] if header else rows)]
        table = read_table(written(file, "\n".join(delimiter.join(row) for row in lines)), schema)
        assert symbols(table, "a") == ["", "p", "1,5", ""]
        assert symbols(table, "b") == ["q", "", f"a{delimiter}b", "r"]
        assert table.num[:, 0].tolist() == [1, 2, 3, 4]


# --- times

UNITS = ("s", "ms", "us", "ns", "iso")
NOON = "2024-01-01T12:"
NOT_ISO = [
    "now", "today", "NaT", "2024", "2024-01", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "2024-04-31",
    "2023-02-29", "2100-02-29", "1969-12-31T23:59:59", "2262-01-01", "9999-12-31", "2024/01/01", "2024-01-01T",
    "2024-01-01T1", "2024-01-01T12", "2024-01-01T24:00", "2024-01-01X12:00", "2024-01-01T12.00", "٢٠٢٤-01-01",
    "1970-01-01T00:00+01:00", *(NOON + rest for rest in ("60", "00:61", "00:0", "00Q", "00+", "00+1", "00+02:")),
    *(NOON + rest for rest in ("00+02:60", "00+24", "00Z0")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("s", "1700000000", 1_700_000_000 * 10**9),
        ("s", "1700000000.123456789", 1_700_000_000_123_456_789),
        ("s", "1700000000.1234567899", 1_700_000_000_123_456_789),
        ("s", "0", 0),
        ("s", "0.5", 500_000_000),
        ("ms", "1700000000123.5", 1_700_000_000_123_500_000),
        ("us", "1700000000123456", 1_700_000_000_123_456_000),
        ("ns", "1700000000123456789", 1_700_000_000_123_456_789),
        ("ns", "5.9", 5),
        ("iso", "1970-01-01", 0),
        ("iso", "1970-01-01T00:00:00.000000001Z", 1),
        ("iso", "2024-02-29 12:30", 1_709_209_800 * 10**9),
        ("iso", "2024-02-29T12:30:15.25+02:00", 1_709_202_615_250_000_000),
        ("iso", "2024-02-29t12:30:15-0130", 1_709_215_215 * 10**9),
        ("iso", "2016-12-31T23:59:60z", 1_483_228_800 * 10**9),
        ("iso", '"2024-02-29T12:30:15,25+02"', 1_709_202_615_250_000_000),
    ],
)
def test_times_are_exact_nanoseconds(file: Path, unit: str, text: str, expected: int) -> None:
    assert read_table(written(file, f"{text},1"), timed(unit)).time.tolist() == [expected]


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        *((unit, text) for unit in UNITS for text in ("", "x", "-1", "1e9", "nan", "1.2.3", ".5")),
        ("s", "99999999999"),
        *(("ns", text) for text in ("9" * 19, "18446744073709551616", "9" * 70)),
        *(("iso", text) for text in NOT_ISO),
    ],
)
def test_what_is_not_a_time_is_named_or_skipped(file: Path, unit: str, text: str) -> None:
    schema = timed(unit, ";")
    name = "ISO 8601" if unit == "iso" else unit
    good = "2024-01-01;1" if unit == "iso" else "5;1"
    complaint = f" line 2, column 1 (ts): {text!r} is not a time in {name}"
    assert refusal(file, f"{good}\n{text};1\n{good}\n", schema) == complaint
    got = outcome(file, schema, "skip")
    assert (got.records, got.skipped, got.first_skipped) == (2, {"not_a_time": 1}, f"{file}{complaint}")


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2261, 12, 30)),
    st.one_of(st.none(), st.integers(-1439, 1439)),
    st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_iso_times_mean_what_python_says(time: datetime, zone: int | None, precision: str) -> None:
    aware = time.replace(tzinfo=UTC if zone is None else timezone(timedelta(minutes=zone)))
    text = (time if zone is None else aware).isoformat(timespec=precision)
    expected = datetime.fromisoformat(text)
    expected = expected if expected.tzinfo else expected.replace(tzinfo=UTC)
    data = np.frombuffer(text.encode(), np.uint8).copy()
    microseconds = (expected - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_iso_time(data, 0, len(data)) == microseconds * 1000


# --- tables from columns


def test_columns_give_the_table_that_the_text_gives(file: Path) -> None:
    stream = simulate(500, seed=9)
    stream.write(file)
    read, made = read_table(file, KDD), stream.table()
    assert np.array_equal(read.num, made.num)
    assert np.array_equal(read.label_names(), made.label_names())
    for attribute in KDD.coded:
        assert symbols(read, attribute.name) == symbols(made, attribute.name)


def test_columns_that_are_absent_or_not_finite_are_named() -> None:
    columns: dict[str, list[Any]] = {"bytes": [1.0, math.nan], "proto": ["a", "b"], "syn": [0, 1]}
    with pytest.raises(InputError, match="record 1: bytes is not a finite number"):
        Table.from_columns(FLOWS, columns)
    with pytest.raises(InputError, match="columns missing for schema flows: bytes, proto"):
        Table.from_columns(FLOWS, {"syn": [0]})


# --- whatever the bytes


def survives(path: Path, content: bytes, schema: Schema, on_error: OnError) -> None:
    got = outcome(written(path, content), schema, on_error, batch_rows=3)
    assert bool(got.error) or got.records > 0
    assert not got.error or got.error.startswith(str(path))


SOURCES = {
    "kdd": (KDD, "\n".join(LINES[:4])),
    "header": (KDD, "\n".join([",".join(NAMES), *LINES[:2]])),
    "arff": (KDD, arff([",".join(ROW[:42])] * 2)),
    "flows": (FLOWS, "\n".join(FLOW_LINES[:4])),
    "iso": (timed("iso"), "2024-01-01T12:00:00.5+02:00,1\n2024-01-01,1e5\n"),
}
nasty = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"\n", b"\r", b",", b";", b'"', b"'", b"\x00", b"%", b"{", b"@data\n", b"e", b"-", b"9" * 30, b"\xff"]
    ),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    source=st.sampled_from(sorted(SOURCES)),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), nasty), max_size=6),
    on_error=st.sampled_from(["stop", "skip"]),
)
def test_fuzz_mutated_files_are_read_or_refused(
    file: Path, source: str, edits: list[tuple[float, int, bytes]], on_error: OnError
) -> None:
    schema, text = SOURCES[source]
    content = text.encode()
    for place, cut, insert in edits:
        at = int(place * len(content))
        content = content[:at] + insert + content[at + cut :]
    survives(file, content, schema, on_error)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=400),
        st.text("0123456789.,;:\"'\n\r\t -+eETZ%@{}", max_size=400).map(str.encode),
        st.tuples(
            st.sampled_from([b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04", b"PK\x05\x06"]), st.binary(max_size=99)
        ).map(b"".join),
    ),
    source=st.sampled_from(sorted(SOURCES)),
    on_error=st.sampled_from(["stop", "skip"]),
)
def test_fuzz_random_bytes_are_read_or_refused(file: Path, content: bytes, source: str, on_error: OnError) -> None:
    survives(file, content, SOURCES[source][0], on_error)


# --- the real files


@pytest.mark.parametrize(
    ("name", "rows", "labels"),
    [
        ("KDDTrain+", 125_973, 23),
        ("KDDTest+", 22_544, 38),
        ("KDDTest-21", 11_850, None),
        ("KDDTrain+_20Percent", 25_192, None),
    ],
)
def test_nsl_kdd_is_read_whole(data_folder: Path, name: str, rows: int, labels: int | None) -> None:
    packed = f"nsl-kdd/{name}.txt.xz"
    reader = RecordReader(data_folder / packed, KDD)
    tables = list(reader)
    assert sum(len(table) for table in tables) == reader.records == rows
    provenance = (data_folder / "PROVENANCE.md").read_text().splitlines()
    cells = next(line.split("|") for line in provenance if line.startswith(f"| {packed} |"))
    assert reader.sha256 == cells[6].strip()
    if labels is not None:
        assert len(tables[-1].labels) - 1 == labels
    if name == "KDDTrain+":
        assert reader.sha256 == "1b86d2f957b33082081bba410fe129b475efebcc13c9014c3f447c8271aadf95"
        assert len(tables[-1].symbols[1]) - 1 == 70
        assert sum(int((table.label_names() == "normal").sum()) for table in tables) == 67_343

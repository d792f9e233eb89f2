"""Schemas: what cannot be is refused with a reason, and hostile text is an InputError like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.records import schema as module
from netclust.records.schema import Attribute, Schema, builtin_schemas, check_schema, load_schema, parse_schema

ONE = '[[attribute]]\nname = "size"\n'


def toml(*attributes: str, top: str = "") -> str:
    """A schema's text from one line of settings for each attribute."""
    return f'name = "t"\n{top}\n' + "".join(f"[[attribute]]\n{a.replace('; ', chr(10))}\n" for a in attributes)


def refusal(text: str | bytes) -> str:
    with pytest.raises(InputError) as error:
        parse_schema(text, "mine.toml")
    return str(error.value)


def test_kdd_is_built_in_with_its_41_features_and_two_optional_columns() -> None:
    kdd = load_schema("kdd")
    assert "kdd" in builtin_schemas()
    assert (kdd.columns, kdd.required_columns, len(kdd.features)) == (43, 41, 41)
    assert (len(kdd.numeric), len(kdd.coded)) == (33, 8)
    assert [a.name for a in kdd.attributes if a.optional] == ["label", "difficulty"]
    assert kdd.normal == ("normal",)
    assert kdd.label_suffix == "."


def test_no_kdd_attack_has_two_categories() -> None:
    kdd = load_schema("kdd")
    assert len(kdd.category_of) == sum(len(labels) for labels in kdd.categories.values())
    assert set(kdd.categories) == {"dos", "probe", "r2l", "u2r"}
    assert kdd.category_of["neptune"] == "dos"
    assert "normal" not in kdd.category_of


def test_what_is_not_said_has_a_default() -> None:
    schema = parse_schema(toml('name = "size"'))
    assert schema == Schema(name="t", attributes=(Attribute(name="size"),))
    assert (schema.normal, schema.delimiter, schema.label_suffix) == (("normal",), ",", "")
    assert schema.with_role("label") is None


def test_roles_are_told_apart() -> None:
    schema = parse_schema(
        toml(
            'name = "ts"; role = "time"; unit = "ms"',
            'name = "src"; role = "key"',
            'name = "uid"; role = "id"',
            'name = "dst"; role = "context"',
            'name = "note"; role = "ignored"',
            'name = "bytes"',
            'name = "proto"; kind = "symbolic"',
            'name = "syn"; kind = "binary"',
            'name = "verdict"; role = "label"; optional = true',
        )
    )
    assert [a.name for a in schema.features] == ["bytes", "proto", "syn"]
    assert [a.name for a in schema.numeric] == ["bytes"]
    assert [a.name for a in schema.coded] == ["proto", "syn"]
    assert [a.name for a in schema.context] == ["src", "uid", "dst"]
    label = schema.with_role("label")
    assert label is not None
    assert label.name == "verdict"
    assert (schema.columns, schema.required_columns) == (9, 8)


def test_another_transform_reaches_features_that_were_looked_at_before() -> None:
    kdd = load_schema("kdd")
    assert {a.transform for a in kdd.numeric} == {"none", "log1p"}
    clipped = kdd.with_transform("clip")
    assert {a.transform for a in clipped.numeric} == {"clip"}
    assert {a.transform for a in clipped.coded} == {"none"}
    assert {a.transform for a in kdd.numeric} == {"none", "log1p"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (toml('name = ""'), "an attribute without a name"),
        (toml('name = "a"', 'name = "b"', 'name = "a"'), "attribute names used twice: a"),
        (toml('name = "Size"', 'name = "size"'), "attribute names used twice: size"),
        (toml('name = "a"; role = "label"'), "no attribute with role feature"),
        ('name = "t"\nattribute = []', "no attribute with role feature"),
        (toml('name = "a"; optional = true'), "an optional attribute must stand at the end, and cannot be a feature"),
        (
            toml('name = "y"; role = "label"; optional = true', 'name = "a"'),
            "an optional attribute must stand at the end, and cannot be a feature",
        ),
        (toml('name = "a"', top="normal = []"), "no normal label named"),
        (toml('name = "a"; min = inf'), "attribute a: min and max must be finite and in order"),
        (toml('name = "a"; max = nan'), "attribute a: min and max must be finite and in order"),
        (toml('name = "a"; min = 2; max = 1'), "attribute a: min and max must be finite and in order"),
        *(
            (
                toml('name = "a"', f'name = "b"; role = "{role}"', f'name = "c"; role = "{role}"'),
                f"more than one attribute has role {role}",
            )
            for role in ("label", "time", "id", "key")
        ),
        *(
            (
                toml('name = "a"', top=f"delimiter = {delimiter}"),
                "the delimiter must be one ASCII character, and no letter, digit, quote or line end",
            )
            for delimiter in ('""', '",,"', '"é"', '"\'"', "'\"'", '"\\n"', '"\\r"', '"\\u0000"', '"7"', '"x"')
        ),
        *(
            (toml('name = "a"', top=f"label_suffix = {suffix}"), "the label_suffix must be one ASCII character or none")
            for suffix in ('".."', '"é"')
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(text: str, reason: str) -> None:
    assert refusal(text) == f"mine.toml: {reason}"


@pytest.mark.parametrize("delimiter", ['"\\t"', '";"', '"|"', '" "'])
def test_the_usual_delimiters_are_accepted(delimiter: str) -> None:
    assert len(parse_schema(toml('name = "a"', top=f"delimiter = {delimiter}")).delimiter) == 1


@pytest.mark.parametrize(
    ("text", "clue"),
    [
        (toml('name = "a"', top="colour = 1"), "unknown field `colour`"),
        (toml('name = "a"; tranform = "log1p"'), "unknown field `tranform`"),
        (toml('name = "a"; kind = "nominal"'), "Invalid enum value 'nominal'"),
        (toml('name = "a"; role = "target"'), "Invalid enum value 'target'"),
        (toml('name = "a"; transform = "sqrt"'), "Invalid enum value 'sqrt'"),
        (toml('name = "a"; role = "time"; unit = "h"'), "Invalid enum value 'h'"),
        (toml('name = "a"; min = "0"'), "$.attribute[0].min"),
        (toml('name = "a"; min = ' + "9" * 400), "$.attribute[0].min"),
        ('name = "t"', "missing required field `attribute`"),
        (ONE, "missing required field `name`"),
        ("name = ", "Invalid value"),
        (b"\xff\xfe", "can't decode"),
        (b"\x00", "Invalid"),
        (toml('name = "a"; min = ' + "9" * 5000), "digits"),
        ("name = " + "[" * 200_000, "recursion"),
    ],
)
def test_text_that_is_not_a_schema_is_refused_and_the_manual_named(text: str | bytes, clue: str) -> None:
    message = refusal(text)
    assert message.startswith("mine.toml: ")
    assert clue in message
    assert message.endswith("See docs/schema.md for what a schema may say.")


def test_an_endless_list_of_attributes_is_refused() -> None:
    attributes = tuple(Attribute(name=f"a{i}") for i in range(module.MAX_ATTRIBUTES + 1))
    with pytest.raises(InputError, match="schema: more than 4096 attributes"):
        check_schema(Schema(name="t", attributes=attributes))
    assert check_schema(Schema(name="t", attributes=attributes[1:]))


def test_a_schema_file_is_read_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml('name = "size"'))
    assert load_schema(path) == load_schema(str(path)) == parse_schema(toml('name = "size"'))


def test_a_refused_schema_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml('name = ""'))
    with pytest.raises(InputError) as error:
        load_schema(path)
    assert str(error.value) == f"{path}: an attribute without a name"


def test_an_oversized_schema_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    path.write_text(toml('name = "size"') + "#" * module.MAX_SCHEMA_BYTES)
    with pytest.raises(InputError) as error:
        load_schema(path)
    assert str(error.value) == f"{path}: larger than {module.MAX_SCHEMA_BYTES} bytes, not a schema"


def test_a_file_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="/dev/zero: larger than"):
        load_schema("/dev/zero")


def test_an_absent_schema_names_those_that_are_built_in(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load_schema("kddd")
    assert str(error.value).startswith("schema 'kddd': No such file or directory. Built in: ")
    assert "kdd" in str(error.value)
    with pytest.raises(InputError, match="Is a directory"):
        load_schema(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: toml('name = "a"', top=text))))
def test_fuzz_any_text_is_a_schema_or_an_input_error(text: str | bytes) -> None:
    try:
        assert parse_schema(text).features
    except InputError as error:
        assert str(error).startswith("schema: ")  # noqa: PT017

"""Schema: the named attributes of a record, what kind each is, and what it is for. A schema is data (TOML).

A new record format needs a schema file and no code:

>>> schema = parse_schema('''
... name = "doors"
... normal = ["ok"]
... [[attribute]]
... name = "seconds"
... transform = "log1p"
... min = 0
... [[attribute]]
... name = "badge"
... kind = "symbolic"
... [[attribute]]
... name = "verdict"
... role = "label"
... ''')
>>> [a.name for a in schema.features]
['seconds', 'badge']
>>> load_schema("kdd").columns
43
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from netclust.errors import InputError

Kind = Literal["numeric", "binary", "symbolic"]
Role = Literal["feature", "label", "time", "id", "context", "key", "ignored"]
Transform = Literal["none", "log1p", "clip"]
TimeUnit = Literal["s", "ms", "us", "ns", "iso"]

MAX_SCHEMA_BYTES = 1 << 20
MAX_ATTRIBUTES = 4096


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One column. `kind` and `transform` matter for features, `unit` for the time; the rest is for checking."""

    name: str
    kind: Kind = "numeric"
    role: Role = "feature"
    transform: Transform = "none"
    unit: TimeUnit = "s"
    min: float | None = None
    max: float | None = None
    optional: bool = False


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """The attributes in column order, which labels mean normal, and the categories of the attacks."""

    name: str
    attributes: tuple[Attribute, ...] = msgspec.field(name="attribute")
    description: str = ""
    normal: tuple[str, ...] = ("normal",)
    delimiter: str = ","
    label_suffix: str = ""
    categories: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def columns(self) -> int:
        """How many columns a full row has."""
        return len(self.attributes)

    @cached_property
    def required_columns(self) -> int:
        """How many columns every row must have: optional ones stand at the end."""
        return sum(not a.optional for a in self.attributes)

    @cached_property
    def features(self) -> tuple[Attribute, ...]:
        """The attributes that are scored."""
        return tuple(a for a in self.attributes if a.role == "feature")

    @cached_property
    def numeric(self) -> tuple[Attribute, ...]:
        """The numeric features, in schema order."""
        return tuple(a for a in self.features if a.kind == "numeric")

    @cached_property
    def coded(self) -> tuple[Attribute, ...]:
        """The binary and symbolic features, in schema order: each becomes a code."""
        return tuple(a for a in self.features if a.kind != "numeric")

    @cached_property
    def context(self) -> tuple[Attribute, ...]:
        """Carried and shown, never scored: context, id and key attributes."""
        return tuple(a for a in self.attributes if a.role in ("context", "id", "key"))

    def with_role(self, role: Role) -> Attribute | None:
        """The single attribute of that role, or None."""
        return next((a for a in self.attributes if a.role == role), None)

    @cached_property
    def category_of(self) -> dict[str, str]:
        """Label to category, for the labels that have one."""
        return {label: category for category, labels in self.categories.items() for label in labels}

    def with_transform(self, transform: Transform) -> Schema:
        """The same schema with one transform for every numeric feature.

        >>> {a.transform for a in load_schema("kdd").with_transform("none").numeric}
        {'none'}
        """
        attributes = tuple(
            msgspec.structs.replace(a, transform=transform) if a.role == "feature" and a.kind == "numeric" else a
            for a in self.attributes
        )
        return msgspec.structs.replace(self, attributes=attributes)


def parse_schema(text: str | bytes, where: str = "schema") -> Schema:
    """Read a schema from TOML text and check it."""
    try:
        schema = msgspec.toml.decode(text, type=Schema)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: {error}. See docs/schema.md for what a schema may say.") from None
    return check_schema(schema, where)


def check_schema(schema: Schema, where: str = "schema") -> Schema:
    """The schema itself, or an error naming the attribute that cannot be."""
    names = [a.name.lower() for a in schema.attributes]  # headers are matched without regard to case
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    delimiter, suffix = schema.delimiter, schema.label_suffix
    problems: Mapping[str, bool] = {
        f"more than {MAX_ATTRIBUTES} attributes": len(names) > MAX_ATTRIBUTES,
        "an attribute without a name": any(not name for name in names),
        f"attribute names used twice: {', '.join(twice)}": bool(twice),
        "no attribute with role feature": not schema.features,
        "the delimiter must be one ASCII character, and no letter, digit, quote or line end": (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in "\"'\r\n\0"
        ),
        "the label_suffix must be one ASCII character or none": len(suffix) > 1 or not suffix.isascii(),
        "an optional attribute must stand at the end, and cannot be a feature": any(
            a.optional and (a.role == "feature" or any(not b.optional for b in schema.attributes[i:]))
            for i, a in enumerate(schema.attributes)
        ),
        "no normal label named": not schema.normal,
    }
    for problem, found in problems.items():
        if found:
            raise InputError(f"{where}: {problem}")
    for role in ("label", "time", "id", "key"):
        if sum(a.role == role for a in schema.attributes) > 1:
            raise InputError(f"{where}: more than one attribute has role {role}")
    for a in schema.attributes:
        bounds = [b for b in (a.min, a.max) if b is not None]
        if not all(math.isfinite(b) for b in bounds) or bounds != sorted(bounds):
            raise InputError(f"{where}: attribute {a.name}: min and max must be finite and in order")
    return schema


def load_schema(name_or_path: str | Path) -> Schema:
    """A built-in schema by name (`kdd`), or one from a TOML file."""
    text = str(name_or_path)
    if text in builtin_schemas():
        return parse_schema(resources.files("netclust").joinpath(f"schemas/{text}.toml").read_bytes(), text)
    path = Path(name_or_path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        known = ", ".join(builtin_schemas())
        raise InputError(f"schema {text!r}: {error.strerror}. Built in: {known}; else give a .toml file.") from None
    if len(content) > MAX_SCHEMA_BYTES:
        raise InputError(f"{path}: larger than {MAX_SCHEMA_BYTES} bytes, not a schema")
    return parse_schema(content, str(path))


def builtin_schemas() -> tuple[str, ...]:
    """Names of the schemas that come with netclust.

    >>> builtin_schemas()
    ('conn', 'flow', 'kdd')
    """
    folder = resources.files("netclust").joinpath("schemas")
    return tuple(sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")))

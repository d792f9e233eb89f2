"""Relational templates: which nodes are tied, said as queries over tables, unrolled to the cliques of a network.

A template names variables over tables and equalities between their columns, as an SQL query does with FROM and WHERE;
every row of its answer is a clique of the nodes that its variables stand for. All cliques of a template share one set
of weights. Templates are a TOML file:

    [[template]]
    name = "same source"
    where = ["a.source = b.source"]       # a and b are nodes, unless `from` says otherwise
    within = 60.0                         # of those up to 60 seconds earlier than a
    nearest = 3                           # the last three
    skip_above = 1000                     # a source with more records than that ties nothing

    [[template]]
    name = "cocited"                      # two pages that one page links to
    from = {k = "links", l = "links"}
    where = ["k.page = l.page", "a.id = k.to", "b.id = l.to"]

    [[template]]
    name = "runs of a service"            # cliques of up to five: all who follow each other there
    group = ["destination", "service"]
    size = 5

>>> nodes = {"source": ["x", "y", "x", "x"], "time": [0.0, 1.0, 2.0, 3.0]}
>>> some = [Template(name="same source", where=("a.source = b.source",), nearest=1)]
>>> from netclust.models.attractive.relation_joins import unroll_relations
>>> unrolled = unroll_relations(some, {"nodes": nodes})
>>> unrolled.cliques.members.reshape(-1, 2).tolist(), unrolled.counts
([[0, 2], [2, 3]], {'same source': 2})

Text from outside is matched against a fixed pattern, never run. An empty value is equal to none, as NULL in SQL. How
many cliques come out is counted before they are made, and too many are refused.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; section 8.1.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from numpy.typing import ArrayLike

from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = [
    "MAX_CLIQUES",
    "NODES",
    "Equality",
    "Tables",
    "Template",
    "read_templates",
    "template_columns",
]

Tables = Mapping[str, Mapping[str, ArrayLike]]
"""Columns of tables, by table and name."""
NODES = "nodes"
"""The table of what has labels."""
MAX_CLIQUES = 5_000_000
"""Cliques of all templates together, and rows on the way to them."""
MAX_TEMPLATES = 100
MAX_VARIABLES = 8

_SIDE = r"([A-Za-z_]\w*)\.([\w-]+)"
_EQUAL = re.compile(rf"\s*{_SIDE}\s*=\s*(?:{_SIDE}|'([^']*)')\s*")


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of tie. Nodes are variables a, b (and others over `nodes`); or they are grouped by columns."""

    name: str
    from_: dict[str, str] = msgspec.field(name="from", default_factory=dict)
    """Table by variable; a and b are nodes without being named."""
    where: tuple[str, ...] = ()
    """Equalities: "a.column = b.column" or "a.column = 'text'"."""
    clique: tuple[str, ...] = ("a", "b")
    """The variables over nodes that are tied."""
    within: float | None = None
    """Two nodes: b is so many units of time earlier at most."""
    nearest: int | None = None
    """Two nodes: b is one of so many that are the last before a."""
    skip_above: int | None = None
    """Values that more rows share than this tie nothing."""
    group: tuple[str, ...] = ()
    """Instead of `where`: runs of nodes that are equal in these columns, in the order of time."""
    size: int = 5
    """Of a run, at most."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        where = f"template {sanitize(self.name)!r}"
        if not self.name or len(self.name) > 100:
            raise InputError("a template needs a name of up to 100 characters")
        if bool(self.where) == bool(self.group):
            raise InputError(f"{where}: give either `where` or `group`")
        if (self.within is not None and not self.within >= 0) or (self.nearest is not None and self.nearest < 1):
            raise InputError(f"{where}: `within` is 0 or more, `nearest` 1 or more")
        if self.skip_above is not None and self.skip_above < 1:
            raise InputError(f"{where}: `skip_above` is 1 or more")
        if not 2 <= self.size <= 1000:
            raise InputError(f"{where}: `size` is 2 to 1000")
        if len(self.clique) < 2 or len(set(self.clique)) < len(self.clique):
            raise InputError(f"{where}: `clique` names two variables or more, each once")
        if len(self.variables) > MAX_VARIABLES:
            raise InputError(f"{where}: more than {MAX_VARIABLES} variables")
        if wrong := [name for name in self.clique if self.variables[name] != NODES]:
            raise InputError(f"{where}: {wrong[0]} is tied, so it must be over {NODES}")
        ordered = self.within is not None or self.nearest is not None
        if ordered and self.group:
            raise InputError(f"{where}: `within` and `nearest` are for two nodes, a `group` has a size")
        if ordered and not (set(self.variables) == set(self.clique) and len(self.clique) == 2):
            raise InputError(f"{where}: `within` and `nearest` are for two nodes that are tied without other tables")
        self.equalities()

    @property
    def variables(self) -> dict[str, str]:
        """Table by variable."""
        return dict.fromkeys(self.clique, NODES) | self.from_

    def equalities(self) -> list[Equality]:
        """What `where` says."""
        found = []
        for text in self.where:
            if (match := _EQUAL.fullmatch(text)) is None:
                raise InputError(
                    f"template {sanitize(self.name)!r}: {sanitize(text)!r} is not an equality, such as "
                    '"a.source = b.source" or "a.service = \'dns\'"'
                )
            one = Equality(*match.groups())
            for variable in (one.left, one.right):
                if variable is not None and variable not in self.variables:
                    raise InputError(f"template {sanitize(self.name)!r}: {variable} is no variable: name it in `from`")
            if one.left == one.right:
                raise InputError(f"template {sanitize(self.name)!r}: {sanitize(text)!r} is about one variable alone")
            found.append(one)
        return found


class Equality(NamedTuple):
    """`left.column = right.other`, or `left.column = 'text'` (right is None)."""

    left: str
    column: str
    right: str | None
    other: str | None
    text: str | None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    template: tuple[Template, ...]


def read_templates(text: str, where: str = "templates") -> tuple[Template, ...]:
    """The templates of a TOML file."""
    try:
        found = msgspec.convert(tomllib.loads(text), _File).template
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, InputError) as error:
        raise InputError(f"{where}: {error}") from None
    if not 1 <= len(found) <= MAX_TEMPLATES:
        raise InputError(f"{where}: {len(found)} templates, expected 1 to {MAX_TEMPLATES}")
    if len({one.name for one in found}) < len(found):
        raise InputError(f"{where}: two templates have one name")
    return found


def template_columns(templates: Sequence[Template], table: str = NODES) -> list[str]:
    """Return the columns of a table that templates look at."""
    found: dict[str, None] = dict.fromkeys(name for one in templates for name in one.group if table == NODES)
    for one in templates:
        for equal in one.equalities():
            found |= {equal.column: None} if one.variables[equal.left] == table else {}
            if equal.right is not None and equal.other is not None and one.variables[equal.right] == table:
                found[equal.other] = None
    return list(found)

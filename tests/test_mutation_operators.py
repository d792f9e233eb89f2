"""Mutations of benchmarks/mutation_operators.py: each changes the code, none changes texts for people or the tree."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def operators() -> Any:
    path = ROOT / "benchmarks" / "mutation_operators.py"
    spec = importlib.util.spec_from_file_location("mutation_operators", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def texts(operators: Any, source: str) -> list[str]:
    return [mutation.text for mutation in operators.mutations(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", ["b < c -> b <= c"]),
        ("a = b is None and c", ["b is None and c -> b is None or c", "b is None -> b is not None"]),
        ("if a:\n    b()", ["a -> not a", "b() -> pass"]),
        ("a = not b", ["not b -> b"]),
        ("a = -1", ["-1 -> 1", "1 -> 2"]),
        ("a = True", ["True -> False"]),
        ("a = 'x'", ["'x' -> 'XXxXX'"]),
        ("a = b(c)", ["b(.. c ..) -> None"]),
        ("a = b(c, d)", ["b(.. c ..) -> None", "b(.. c ..) -> gone", "b(.. d ..) -> None", "b(.. d ..) -> gone"]),
        ("a = b(d=e)", ["b(.. d=e ..) -> d=None", "b(.. d=e ..) -> gone"]),
        ("def f():\n    a = 1", ["a = 1 -> a = None", "1 -> 2"]),
        ("def f():\n    a += 1", ["a += 1 -> a = 1", "a += 1 -> pass", "1 -> 2"]),
        ("def f():\n    return a", ["return a -> return None"]),
        ("def f(a=1): ...", ["1 -> 2"]),
        ("for a in b:\n    break", ["break -> continue"]),
        ("del a", ["del a -> pass"]),
    ],
)  # fmt: skip
def test_each_operator_makes_its_change(operators: Any, source: str, expected: list[str]) -> None:
    assert texts(operators, source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "from a import b",
        "a: int",
        "def f(a: Literal['x']) -> Literal['y']: ...",
        "a = Literal['x']",
        "if TYPE_CHECKING:\n    a = 1",
        "__all__ = ['a']",
        "def __repr__(self):\n    return 'x'",
        "self._log.warning('it happened', count=1)",
        "assert a is not None",
    ],
)
def test_what_only_people_or_checkers_read_is_left_alone(operators: Any, source: str) -> None:
    assert texts(operators, source) == []


def test_the_message_of_an_error_is_left_alone_and_raising_it_is_not(operators: Any) -> None:
    assert texts(operators, "raise InputError('no', f'{a}')") == ["raise InputError('no', f'{a}') -> pass"]


@pytest.mark.parametrize(
    "path", ["netclust/linking/linker.py", "stream/detection/detector.py", "stream/store/store.py"]
)
def test_every_mutation_compiles_and_the_tree_is_as_before(operators: Any, path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    before = compile(tree, path, "exec")
    found = operators.mutations(tree)
    assert len(found) > 300
    for mutation in found[::17]:
        with mutation.applied():
            assert compile(tree, path, "exec") != before, mutation.text
    assert compile(tree, path, "exec") == before

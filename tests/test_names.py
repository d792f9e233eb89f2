"""Names of the four trees: a class can be found by its name alone."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = ("netclust", "stream", "models", "datasets")


def test_every_public_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    files = {path.resolve() for tree in TREES for path in (ROOT / tree).rglob("*.py")}
    for path in sorted(files):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 500
    assert {name: where for name, where in places.items() if len(where) > 1} == {}

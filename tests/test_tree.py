"""The four trees: small folders, and names that lead to one place."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = ("netclust", "stream", "models", "datasets")
FILES = sorted({path.resolve() for tree in TREES for path in (ROOT / tree).rglob("*.py")})
REPEATED = {"__init__.py", "__main__.py", "base.py", "commands.py", "task.py"}
"""Names of files that mean the same in every room."""


def test_every_folder_has_between_3_and_30_files() -> None:
    folders = {path.parent for path in FILES}
    sizes = {str(f.relative_to(ROOT)): sum(child.is_file() for child in f.iterdir()) for f in folders}
    assert len(sizes) > 40
    assert {folder: size for folder, size in sizes.items() if not 3 <= size <= 30} == {}


def test_a_file_name_stands_for_two_files_at_most() -> None:
    names = Counter(path.name for path in FILES if path.name not in REPEATED)
    assert {name: count for name, count in names.items() if count > 2} == {}


def test_modules_of_netclust_are_imported_by_string_in_two_files_only() -> None:
    found = set()
    for path in FILES:
        text = path.read_text()
        tree = ast.parse(text)
        names = any(isinstance(n, ast.Constant) and str(n.value).startswith("netclust.") for n in ast.walk(tree))
        if "import_module(" in text and (names or 'f"netclust.' in text):
            found.add(str(path.relative_to(ROOT)))
    assert found == {"netclust/__init__.py", "netclust/cli/app.py"}


def test_every_public_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 500
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_kernels_of_tasks_import_kernels_alone() -> None:
    for path in FILES:
        if path.name.endswith("_kernels.py"):
            nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
            ours = {node.module or "" for node in nodes if (node.module or "").startswith("netclust")}
            assert {m for m in ours if not m.startswith("netclust.kernels") and not m.endswith("_kernels")} == set()

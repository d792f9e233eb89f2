"""A kernel is compiled again when anything that it consists of has changed, and only then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from netclust.kernels import cache, digests

# Two modules: `top` calls `middle` calls `leaf`; `aside` calls none of them; `limited` reads a constant elsewhere.
LEAVES = """
import numba
from netclust.kernels.jit import borrowing, inlined, inner, kernel

LIMIT = 10

@inner
def leaf(x):
    return x + 1

@inlined
def middle(x):
    return 2 * leaf(x)

@kernel
def called(x):
    return leaf(x) * 100
"""
TOPS = """
import leaves
from leaves import LIMIT, called, middle
from netclust.kernels.jit import kernel

@kernel
def top(x):
    return middle(x)

@kernel
def topmost(x):
    return called(x) + 1

@kernel
def aside(x):
    '''Subtract one.'''
    return x - 1

@kernel
def limited(x):
    return min(x, LIMIT)

@kernel
def limited_by_attribute(x):
    return min(x, leaves.LIMIT)
"""
PROGRAM = """
import json
import tops
from netclust.kernels.jit import Kernel
kernels = {name: f for name, f in vars(tops).items() if isinstance(f, Kernel)}
results = {name: f(50) for name, f in sorted(kernels.items())}
print(json.dumps([results, sorted(name for name, f in kernels.items() if f.stats.cache_misses)]))
"""
ALL = ["aside", "called", "limited", "limited_by_attribute", "top", "topmost"]
RESULTS = {"aside": 49, "called": 5100, "limited": 10, "limited_by_attribute": 10, "top": 102, "topmost": 5101}


class Checkout:
    """The two modules in a folder, run in a process of its own."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self.folder, self.kept = folder, kept
        folder.mkdir()
        (folder / "leaves.py").write_text(LEAVES)
        (folder / "tops.py").write_text(TOPS)

    def change(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def run(self, **env: str) -> tuple[dict[str, int], list[str]]:
        """What the kernels gave, and which of them were compiled."""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-B", "-c", PROGRAM],
            cwd=self.folder, env=os.environ | {"NUMBA_CACHE_DIR": str(self.kept), "NETCLUST_PREBUILT": "0"} | env,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        results, compiled = json.loads(done.stdout)
        return results, compiled


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """All of it compiled once."""
    made = Checkout(tmp_path / "checkout", tmp_path / "cache")
    assert made.run() == (RESULTS, ALL)
    return made


def test_exactly_the_callers_of_a_changed_leaf_are_compiled_again(checkout: Checkout) -> None:
    checkout.change("leaves.py", "return x + 1", "return x + 2")
    new = {"called": 5200, "top": 104, "topmost": 5201}
    assert checkout.run() == (RESULTS | new, ["called", "top", "topmost"])
    assert checkout.run() == (RESULTS | new, [])


def test_readers_of_a_changed_constant_of_another_module_are_compiled_again(checkout: Checkout) -> None:
    checkout.change("leaves.py", "LIMIT = 10", "LIMIT = 20")
    new = {"limited": 20, "limited_by_attribute": 20}
    assert checkout.run() == (RESULTS | new, ["limited", "limited_by_attribute"])


def test_options_and_settings_are_part_of_the_version(checkout: Checkout) -> None:
    checkout.change("leaves.py", "@inlined\ndef middle", "@borrowing(inlined)\ndef middle")
    assert checkout.run() == (RESULTS, ["top"])
    assert checkout.run(NUMBA_BOUNDSCHECK="1") == (RESULTS, ALL)


def test_every_constant_that_python_puts_into_code_has_a_digest() -> None:
    constants = [None, True, 1, 2.5, 1j, "a", b"a", ..., (1, (2, 3)), frozenset({1, 2}), slice(1, None), range(3)]
    found = [digests._value(constant, []) for constant in constants]
    assert len(set(found)) == len(constants)
    assert digests._value(slice(1, 2), []) != digests._value(slice(1, 3), [])


def test_comments_lines_times_and_folders_are_not_part_of_the_version(checkout: Checkout, tmp_path: Path) -> None:
    checkout.change("leaves.py", "LIMIT = 10", "# a comment, and another line\n\nLIMIT = 10")
    checkout.change("tops.py", "Subtract one.", "Another docstring.")
    os.utime(checkout.folder / "tops.py", (1, 1))
    assert checkout.run() == (RESULTS, [])
    assert Checkout(tmp_path / "another", checkout.kept).run() == (RESULTS, [])


def test_going_back_to_an_earlier_version_compiles_nothing(checkout: Checkout) -> None:
    checkout.change("leaves.py", "return x + 1", "return x + 2")
    checkout.run()
    checkout.change("leaves.py", "return x + 2", "return x + 1")
    assert checkout.run() == (RESULTS, [])


def test_versions_do_not_pile_up(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys, types
        from netclust.kernels.jit import kernel
        for number in range(int(sys.argv[1])):
            made = {"kernel": kernel, "NUMBER": number, "__name__": "versions"}
            exec("@kernel\\ndef add(x):\\n    return x + NUMBER", made)
            assert made["add"](1) == 1 + number
    """)
    subprocess.run(
        [sys.executable, "-c", program, str(cache.VERSIONS + 3)], check=True, timeout=120, cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NETCLUST_PREBUILT": "0"},
    )  # fmt: skip
    assert len(list(tmp_path.rglob("versions.add-*.kernel"))) == cache.VERSIONS

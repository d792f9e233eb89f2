"""Mutation testing: small changes of the code, each of which the quick tests should notice.

    python benchmarks/mutants.py --group linker --sample 300 --seed 1

takes a random sample of all mutants of a group of modules (mutants.toml), runs the tests of the quick tier that execute
the changed line, the quickest first, and notes in results/mutants.json which mutants no test notices. A mutant that
no longer ends counts as noticed, and is counted apart. Some runs without a change show that no test fails by itself.

`--measured FILE` keeps which test executes what, for the next run; `--only TEXT` takes mutants whose place contains it;
`--list` prints the survivors of the last runs as the table of docs/testing.md.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import math
import os
import random
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from common import RESULTS, ROOT, save
from mutation_measuring import Measured, measure, read_measured
from mutation_operators import Mutation, mutations
from mutation_processes import COMPILES, KILLED, REFUSED, SURVIVED, TIMEOUT, warm_up
from mutation_running import Case, run_functions, run_module

CONTROLS = 10


@dataclass(frozen=True)
class Module:
    """A file and its syntax tree, which mutations are applied to."""

    path: Path
    tree: ast.Module
    code: CodeType

    @classmethod
    def read(cls, path: Path) -> Module:
        tree = ast.parse(path.read_bytes())
        return cls(path, tree, compile(tree, str(path), "exec"))

    def changed(self, mutation: Mutation) -> CodeType:
        with mutation.applied():
            return compile(self.tree, str(self.path), "exec")


@dataclass(frozen=True)
class Mutant:
    """A mutation of a module; None: no change, which no test should notice."""

    module: Module
    mutation: Mutation
    control: bool = False

    @property
    def name(self) -> str:
        """The file, the function and the change: as long as they stay, the mutant is the same."""
        path = self.module.path.relative_to(ROOT)
        return f"{path} {self.mutation.scope or '(module)'}: {self.mutation.text}"

    def code(self) -> CodeType:
        return self.module.code if self.control else self.module.changed(self.mutation)

    def case(self, tests: dict[str, float]) -> Case:
        return Case(self.module.path, self.mutation.scope, tests, self.code)


class Tests:
    """Which tests execute a mutant."""

    def __init__(self, measured: dict[str, Measured]) -> None:
        self._seconds = {name: test.seconds for name, test in measured.items()}
        self._by_line: dict[str, list[str]] = {}
        for name, test in measured.items():
            for line in test.lines:
                self._by_line.setdefault(line, []).append(name)

    def of(self, mutant: Mutant) -> dict[str, float]:
        """The tests and their seconds."""
        path, mutation = mutant.module.path, mutant.mutation
        lines: Iterable[int] = range(mutation.owner[0], mutation.owner[1] + 1)
        if not mutation.scope:  # what a module or class defines may be used anywhere in it
            lines = range(1, 10_000)
        return {name: self._seconds[name] for line in lines for name in self._by_line.get(f"{path}:{line}", ())}


def main() -> None:
    groups = tomllib.loads((ROOT / "benchmarks" / "mutants.toml").read_text())
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--group", choices=[*groups, "all"], default="all")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="take mutants whose file, function or change contains this")
    parser.add_argument("--measured", type=Path, help="a file to keep which test executes what")
    parser.add_argument("--list", action="store_true", help="print the survivors of the last runs, as Markdown")
    given = parser.parse_args()
    if given.list:
        print("\n".join(as_markdown(with_reasons())))
        return
    os.environ["NETCLUST_DATA"] = "/dev/null/none"  # tests on the shared data are not of the quick tier
    print(f"{warm_up()} compiled kernels loaded", flush=True)
    for name, group in groups.items():
        if given.group in {name, "all"}:
            result = run_group(group, given)
            if not given.only:
                keep(name, {"about": group["about"], "seed": given.seed, **result})


def run_group(group: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """Sample and run the mutants of a group."""
    began = time.perf_counter()
    paths = _matching(group["modules"])
    tests = [str(path.relative_to(ROOT)) for path in [*_matching(group["tests"]), *paths]]
    with tempfile.TemporaryDirectory() as folder:
        into = given.measured or Path(folder, "measured.json")
        if not into.is_file():
            measure(tests, paths, into)
        choice = Tests(read_measured(into))
    rng = random.Random(given.seed)  # noqa: S311 (a sample)
    all_mutants = [Mutant(m, each) for m in map(Module.read, paths) for each in mutations(m.tree)]
    wanted = [mutant for mutant in all_mutants if given.only in mutant.name]
    drawn = sample(wanted, rng)
    sampled: list[Mutant] = []
    outcomes: list[str] = []
    compiling = 0
    while more := list(itertools.islice(drawn, given.sample - len(sampled))):
        found = run(more, choice, tests)
        compiling += found.count(COMPILES)
        counted = [i for i, outcome in enumerate(found) if outcome != COMPILES]
        sampled += [more[i] for i in counted]
        outcomes += [found[i] for i in counted]
    inside = [mutant for mutant in sampled if mutant.mutation.scope]
    controls = [Mutant(m.module, m.mutation, control=True) for m in rng.sample(inside, min(CONTROLS, len(inside)))]
    alarms = sum(outcome != SURVIVED for outcome in run(controls, choice, tests))
    counts = Counter(outcomes)
    noticed = counts[KILLED] + counts[TIMEOUT]
    survivors = [m for m, outcome in zip(sampled, outcomes, strict=True) if outcome == SURVIVED]
    return {
        "modules": [str(path.relative_to(ROOT)) for path in paths],
        "mutants": len(all_mutants),
        "sampled": len(sampled),
        "killed": counts[KILLED],
        "timeouts": counts[TIMEOUT],
        "survived": counts[SURVIVED],
        "share_killed": round(noticed / max(len(sampled), 1), 4),
        "interval_95": [round(bound, 4) for bound in wilson(noticed, len(sampled))],
        "controls": len(controls),
        "controls_killed": alarms,
        "left_out_as_they_compile_kernels": compiling,
        "seconds": round(time.perf_counter() - began),
        "survivors": [
            {
                "place": f"{m.module.path.relative_to(ROOT)}:{m.mutation.line}",
                "function": m.mutation.scope,
                "change": m.mutation.text,
                "tests": len(choice.of(m)),
                "name": m.name,
            }
            for m in survivors
        ],
    }


def sample(mutants: Sequence[Mutant], rng: random.Random) -> Iterator[Mutant]:
    """Mutants in a random order; what compiles to the same code is no mutant."""
    for mutant in rng.sample(mutants, len(mutants)):
        if not same(mutant.code(), mutant.module.code):
            yield mutant


def same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same, wherever their text stands."""
    pairs = list(zip(one.co_consts, other.co_consts, strict=False))
    return (
        (one.co_code, one.co_names, one.co_exceptiontable) == (other.co_code, other.co_names, other.co_exceptiontable)
        and len(one.co_consts) == len(other.co_consts)
        and all(same(a, b) for a, b in pairs if isinstance(a, CodeType) and isinstance(b, CodeType))
        and all(type(a) is type(b) and (isinstance(a, CodeType) or repr(a) == repr(b)) for a, b in pairs)
    )


def run(mutants: Sequence[Mutant], choice: Tests, tests: Sequence[str]) -> list[str]:
    """The outcome of each mutant."""
    cases = [mutant.case(choice.of(mutant)) for mutant in mutants]
    outcomes = [SURVIVED] * len(cases)  # what no test executes
    inside = [i for i, case in enumerate(cases) if case.tests and case.scope]
    again = [i for i, case in enumerate(cases) if case.tests and not case.scope]

    def note(i: int, outcome: str) -> None:
        outcomes[i] = outcome
        if outcome == REFUSED:
            again.append(i)
        kind = "control: " if mutants[i].control else ""
        print(f"{outcome:9}{mutants[i].mutation.line:5} {kind}{mutants[i].name}", flush=True)

    if inside:
        run_functions([cases[i] for i in inside], tests, lambda number, outcome: note(inside[number], outcome))
    for i in again:
        note(i, run_module(cases[i]))
    return outcomes


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share.

    >>> [round(bound, 3) for bound in wilson(255, 300)]
    [0.805, 0.886]
    """
    if not count:
        return 0.0, 1.0
    z, share = 1.96, hits / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def with_reasons() -> dict[str, Any]:
    """The results so far; reasons for survivors that were written down since are put into the file."""
    path = RESULTS / "mutants.json"
    results: dict[str, Any] = json.loads(path.read_text())
    reasons = tomllib.loads((ROOT / "benchmarks" / "mutants-survivors.toml").read_text())
    for group in results["groups"].values():
        for survivor in group["survivors"]:
            survivor["reason"] = reasons.get(survivor["name"], "")
    path.write_text(json.dumps(results, indent=2) + "\n")
    return dict(results["groups"])


def keep(name: str, result: dict[str, Any]) -> None:
    """Put a group's result into the file beside those of the others."""
    path = RESULTS / "mutants.json"
    groups = json.loads(path.read_text())["groups"] if path.is_file() else {}
    save("mutants", {"groups": {**groups, name: result}})


def as_markdown(groups: dict[str, Any]) -> Iterator[str]:
    """Figures and survivors of all groups."""
    yield "| group | mutants | sampled | killed | no end | survived | share killed (95 %) |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for group in groups.values():
        low, high = group["interval_95"]
        yield (
            f"| {group['about']} | {group['mutants']:,} | {group['sampled']} | {group['killed']} | {group['timeouts']} "
            f"| {group['survived']} | {group['share_killed']:.1%} ({low:.1%} to {high:.1%}) |"
        )
    for group in groups.values():
        yield f"\n### Survivors: {group['about']}\n"
        yield "| place | change | why it survives |"
        yield "|---|---|---|"
        for survivor in group["survivors"]:
            change = survivor["change"].replace("|", "\\|")
            yield f"| `{survivor['place']}` | `{change}` | {survivor['reason']} |"


def _matching(patterns: Sequence[str]) -> list[Path]:
    """Files, without doubles, in order."""
    return list(dict.fromkeys(path for pattern in patterns for path in sorted(ROOT.glob(pattern))))


if __name__ == "__main__":
    main()

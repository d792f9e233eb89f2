"""Options that several commands have, each defined once, and options in groups.

A group is a frozen dataclass whose fields are options; a command with one has all of its options:

>>> from dataclasses import dataclass
>>> app = typer.Typer()
>>> @dataclass(frozen=True)
... class Size:
...     width: Annotated[int, typer.Option(help="How wide.")] = 1
...     height: Annotated[int, typer.Option(help="How high.")] = 1
>>> @app.command()
... @with_groups
... def area(*, size: Size, unit: str = "m") -> None:
...     print(f"{size.width * size.height} {unit}")
>>> app(["--width", "3", "--height", "2"], standalone_mode=False)
6 m
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

__all__ = [
    "CostOption",
    "EpsilonOption",
    "ModelOption",
    "NormalOption",
    "OutputModelOption",
    "ProcessesOption",
    "SvmLearner",
    "SvmLearnerOption",
    "with_groups",
]


class SvmLearner(StrEnum):
    """The learners of structural SVMs."""

    one_slack = "one-slack"
    n_slack = "n-slack"
    frank_wolfe = "frank-wolfe"


ModelOption = Annotated[Path, typer.Option(help="The model file.")]
OutputModelOption = Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")]
CostOption = Annotated[str, typer.Option("--C", help="Weight of the loss: a number, or cv to choose it.")]
EpsilonOption = Annotated[float, typer.Option(help="How far a constraint may be violated at the end, percent.")]
SvmLearnerOption = Annotated[SvmLearner, typer.Option(help="How weights are learned.")]
ProcessesOption = Annotated[int, typer.Option(min=1, max=64, help="Processes.")]
NormalOption = Annotated[
    list[str] | None,
    typer.Option(help="Labels that are normal; all others then count as attack. May be given again."),
]


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its groups, in the place of each group."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters.extend(_parameters(groups[parameter.name]))
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    del grouped.__wrapped__
    grouped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    grouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return grouped


def _parameters(group: type[Any]) -> Iterator[inspect.Parameter]:
    """Yield the options of a group."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default

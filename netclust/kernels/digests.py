"""Digests of kernels: two kernels with the same digest compile to the same code.

numba looks at a function's own file only, and so misses a change in a function of another file that it calls. A digest
here covers the code of the function, every function that it reaches through its globals, the value of every constant
that any of them reads, and what compiles them. It does not cover paths, line numbers, docstrings or comments.
"""

from __future__ import annotations

import dis
import enum
import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from llvmlite import ir
from numba.core import config
from numba.core.dispatcher import Dispatcher

# Modules whose content their version tells.
_VERSIONED = {"numba", "numpy", "llvmlite", *sys.stdlib_module_names} - {"__main__"}
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML",
             "ENABLE_AVX", "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS")  # fmt: skip


def digest(function: Any) -> str:
    """Return the digest of a compiled function: what it consists of, and what compiles it for this processor."""
    return _digest(function, _compiler() + _processor())


def portable_digest(function: Any) -> str:
    """Return the digest of a compiled function with any processor: prebuilt kernels are named after it."""
    return _digest(function, _compiler())


def _digest(function: Any, compiler: str) -> str:
    parts = [compiler, *(f"{name} {content}" for name, content in sorted(_reached(function).items()))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def reached_parts(function: Any) -> set[str]:
    """Return the names of all compiled functions that a compiled function consists of, itself included."""
    return {name for name, content in _reached(function).items() if content.startswith("compiled")}


@cache
def _compiler() -> str:
    """What compiles: versions and settings."""
    settings = [f"{name}={getattr(config, name, None)}" for name in _SETTINGS]
    ours = [_file_digest(str(Path(__file__).with_name(name))) for name in ("jit.py", "parts.py")]
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
    return repr((versions, settings, ours))


@cache
def _processor() -> str:
    """What it is compiled for, and the settings that say so. Arrays are numba's own, so numpy matters little."""
    from numba.core.registry import cpu_target

    named = [f"{name}={getattr(config, name, None)}" for name in ("CPU_NAME", "CPU_FEATURES")]
    return repr((np.__version__, named, cpu_target.target_context.codegen().magic_tuple()))


def _reached(start: Any) -> dict[str, str]:
    """Everything that a function consists of, by name: what is reached from it, and a digest of each by itself."""
    found: dict[str, str] = {}
    waiting = [start]
    while waiting:
        thing = waiting.pop()
        name = name_of(thing)
        if name in found:
            continue
        found[name], more = _content(thing)
        waiting += more
    return found


def name_of(thing: Any) -> str:
    """Return the name of a function or class, compiled or not."""
    function = thing.py_func if isinstance(thing, Dispatcher) else thing
    return f"{type(thing).__name__} {function.__module__}.{function.__qualname__}"


def _content(thing: Any) -> tuple[str, list[Any]]:
    """A digest of a function or class by itself, and what it refers to that has a content of its own."""
    if isinstance(thing, type):
        return _class_content(thing)
    function = thing.py_func if isinstance(thing, Dispatcher) else thing
    kind = f"compiled {sorted(thing.targetoptions.items(), key=str)!r}" if isinstance(thing, Dispatcher) else "plain"
    more: list[Any] = []
    values = [f"{name}={_value(value, more)}" for name, value in _read_by(function)]
    values += [_value(default, more) for default in (function.__defaults__ or ())]
    content = repr((kind, _code(function.__code__, function.__doc__), values))
    return f"{kind.split()[0]} {hashlib.sha256(content.encode()).hexdigest()}", more


def _class_content(kind: type) -> tuple[str, list[Any]]:
    """A class: its fields and values and functions."""
    more: list[Any] = [base for base in kind.__bases__ if not _is_versioned(base)]
    values = []
    if hasattr(kind, "_fields"):  # a named tuple is its fields
        return f"class {kind.__bases__} {kind._fields}", more
    for name, member in sorted(vars(kind).items()):
        inner = getattr(member, "__func__", member)
        if isinstance(inner, FunctionType):
            more.append(inner)
        elif not name.startswith("__") and not inspect.isdatadescriptor(member):
            values.append(f"{name}={_value(member, more)}")
    content = repr((kind.__module__, kind.__qualname__, values))
    return f"class {hashlib.sha256(content.encode()).hexdigest()}", more


def _code(code: CodeType, doc: str | None) -> Any:
    """Bytecode and its constants, without docstrings, lines and paths."""
    constants = tuple(
        _code(item, None) if isinstance(item, CodeType) else None if item == doc else _value(item, [])
        for item in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags)
    return code.co_code.hex(), constants, names


def _read_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals and closed-over variables that a function reads, attributes of modules one by one."""
    closed = inspect.getclosurevars(function).nonlocals
    yield from closed.items()
    instructions = [i for code in _codes(function.__code__) for i in dis.get_instructions(code)]
    names = sorted({str(i.argval) for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")})
    attributes = sorted({name for code in _codes(function.__code__) for name in code.co_names})
    for name in names:
        if name in function.__globals__:
            yield from _attributes(name, function.__globals__[name], attributes)


def _attributes(path: str, value: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    """A value, or of a module of ours whatever of it the function can mean."""
    if not isinstance(value, ModuleType):
        yield path, value
    elif value.__name__.partition(".")[0] in _VERSIONED:
        yield path, None
    else:
        for name in names:
            if hasattr(value, name):
                yield from _attributes(f"{path}.{name}", getattr(value, name), names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions within."""
    yield code
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _codes(item)


def _is_versioned(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "builtins").partition(".")[0] in _VERSIONED


def _value(value: Any, more: list[Any]) -> str:
    """A value as text; functions and classes by name, with their content to be found by itself."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}={_value(value.value, more)}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, range, type(...))):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{type(value).__name__} {value.dtype!r} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} ({', '.join(_value(item, more) for item in value)})"
    if isinstance(value, slice):  # a constant from Python 3.14 on
        return f"slice {_value((value.start, value.stop, value.step), more)}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__} {sorted(_value(item, more) for item in value)}"
    if isinstance(value, dict):
        return f"dict {[(_value(key, more), _value(item, more)) for key, item in value.items()]}"
    if isinstance(value, (np.dtype, numba.types.Type, ir.Type)):
        return f"{type(value).__name__} {value!s}"
    if isinstance(value, (staticmethod, classmethod)):
        return _value(value.__func__, more)
    definition = getattr(value, "_defn", None)  # an intrinsic: what writes its code
    if definition is not None:
        value = definition
    if isinstance(value, (Dispatcher, FunctionType, type)) and not _is_versioned(value):
        more.append(value)
        return name_of(value)
    if _is_versioned(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)} {type(value).__name__}"
    raise TypeError(f"a kernel reads a {type(value).__qualname__}, whose content a digest cannot cover: {value!r}")


@cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()

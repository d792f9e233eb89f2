"""Mutations of a Python module: small changes of its syntax tree, each of which some test should notice.

The operators are those of mutmut, and the removal of statements. Left out is what changes texts for people alone
(docstrings, messages of errors and logs, `__repr__`), what only type checkers read, and decorators.

>>> tree = ast.parse("def half(n):\\n    return n // 2 if n > 0 else None\\n")
>>> for mutation in mutations(tree):
...     print(mutation.line, mutation.scope, mutation.text)
2 half return n // 2 if n > 0 else None -> return None
2 half n > 0 -> n >= 0
2 half 0 -> 1
2 half n // 2 -> n / 2
2 half 2 -> 3
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Div,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}  # fmt: skip
_FOR_PEOPLE = {"__repr__", "__str__"}
_FOR_CHECKERS = {"cast", "TypeVar", "overload", "NewType"}
_LOGS = {"debug", "info", "warning", "error", "critical", "exception", "warn"}


@dataclass(eq=False)
class Mutation:
    """One change: a node of the tree, and what stands in its place while it is applied."""

    line: int
    scope: str
    """The outermost function that it is in, with its class; "" at the level of module or class."""
    owner: tuple[int, int]
    """The lines of the statement that it is in, or of the head of a compound one."""
    text: str
    _holder: ast.AST = field(repr=False)
    _field: str = field(repr=False)
    _place: int | None = field(repr=False)
    _new: ast.AST | None = field(repr=False)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Change the tree for a while."""
        siblings = getattr(self._holder, self._field)
        if self._place is None:
            setattr(self._holder, self._field, self._new)
        elif self._new is None:
            setattr(self._holder, self._field, siblings[: self._place] + siblings[self._place + 1 :])
        else:
            setattr(self._holder, self._field, [*siblings[: self._place], self._new, *siblings[self._place + 1 :]])
        try:
            yield
        finally:
            setattr(self._holder, self._field, siblings)


def mutations(tree: ast.Module) -> list[Mutation]:
    """Return all mutations of a module, in the order of its text."""
    return list(_Walk().block(tree, "body", tree.body))


class _Walk:
    """One walk through a module, which knows the function and statement that it is in."""

    def __init__(self) -> None:
        self.scope = ""
        self.path: list[str] = []
        self.owner = (0, 0)

    def block(self, holder: ast.AST, name: str, statements: list[ast.stmt]) -> Iterator[Mutation]:
        for place, statement in enumerate(statements):
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):  # a docstring
                yield from self.statement(holder, name, place, statement)

    def statement(self, holder: ast.AST, name: str, place: int, node: ast.stmt) -> Iterator[Mutation]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self.function(node)
                return
            case ast.ClassDef():
                self.path.append(node.name)
                yield from self.block(node, "body", node.body)
                self.path.pop()
                return
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.Assign(targets=[ast.Name(id="__slots__")]):
                return
            case ast.Expr(value=ast.Call() as call) if _is_log(call):
                return
        bodies = [node.body[0].lineno] if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try) else []
        outer, self.owner = self.owner, (node.lineno, bodies[0] - 1 if bodies else node.end_lineno or node.lineno)
        self.owner = (self.owner[0], max(self.owner))
        yield from self.whole(holder, name, place, node)
        for part, value in ast.iter_fields(node):
            if part == "annotation":
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                head, self.owner = self.owner, outer
                yield from self.block(node, part, value)
                self.owner = head
            elif isinstance(value, list):
                for i, each in enumerate(value):
                    if isinstance(each, ast.ExceptHandler):
                        yield from self.block(each, "body", each.body)
                    elif isinstance(each, ast.match_case):
                        if each.guard is not None:
                            yield from self.expression(each, "guard", None, each.guard)
                        yield from self.block(each, "body", each.body)
                    elif isinstance(each, ast.withitem):
                        yield from self.expression(each, "context_expr", None, each.context_expr)
                    elif isinstance(each, ast.expr):
                        yield from self.expression(node, part, i, each)
            elif isinstance(value, ast.expr):
                yield from self.expression(node, part, None, value, texts=not isinstance(node, ast.Raise))
        self.owner = outer

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Mutation]:
        if node.name in _FOR_PEOPLE or any("overload" in ast.dump(each) for each in node.decorator_list):
            return
        body = node.body
        outermost = not self.scope
        outer, self.owner = self.owner, (body[0].lineno, body[-1].end_lineno or body[-1].lineno)
        for name, defaults in (("defaults", node.args.defaults), ("kw_defaults", node.args.kw_defaults)):
            for i, default in enumerate(defaults):
                if default is not None:
                    yield from self.expression(node.args, name, i, default)
        self.path.append(node.name)
        if outermost:
            self.scope = ".".join(self.path)
        yield from self.block(node, "body", body)
        self.path.pop()
        if outermost:
            self.scope = ""
        self.owner = outer

    def whole(self, holder: ast.AST, name: str, place: int, node: ast.stmt) -> Iterator[Mutation]:
        """Mutations of a statement as a whole."""
        nothing = ast.Constant(None)
        match node:
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self.made(node, holder, name, place, ast.Return(nothing))
            case ast.Assign(value=value) if self.scope and not _is_none(value):
                yield self.made(node, holder, name, place, ast.Assign(node.targets, nothing))
            case ast.AnnAssign(value=ast.expr() as value) if self.scope and not _is_none(value):
                yield self.made(node, holder, name, place, ast.Assign([node.target], nothing))
            case ast.AugAssign():
                yield self.made(node, holder, name, place, ast.Assign([node.target], node.value))
                yield self.made(node, holder, name, place, ast.Pass())
            case ast.Raise() | ast.Delete() | ast.Expr(value=ast.Call()):
                yield self.made(node, holder, name, place, ast.Pass())
            case ast.Continue():
                yield self.made(node, holder, name, place, ast.Break())
            case ast.Break():
                yield self.made(node, holder, name, place, ast.Continue())

    def expression(
        self, holder: ast.AST, name: str, place: int | None, node: ast.expr, *, texts: bool = True
    ) -> Iterator[Mutation]:
        """Mutations of an expression and all within. `texts`: also of strings."""

        def into(new: ast.AST) -> Mutation:
            return self.made(node, holder, name, place, new)

        match node:
            case ast.Subscript(value=ast.Name(id="Literal")):  # a type
                return
            case ast.Compare():
                for i, operator in enumerate(node.ops):
                    ops = [*node.ops[:i], _COMPARED[type(operator)](), *node.ops[i + 1 :]]
                    yield into(ast.Compare(node.left, ops, node.comparators))
            case ast.BoolOp():
                yield into(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
            case ast.BinOp() if type(node.op) in _COMPUTED:
                yield into(ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
                yield into(copy.copy(node.operand))
            case ast.IfExp(test=test) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                yield into(ast.IfExp(ast.UnaryOp(ast.Not(), test), node.body, node.orelse))
            case ast.Constant(value=bool() as value):
                yield into(ast.Constant(not value))
            case ast.Constant(value=int() | float() as number):
                yield into(ast.Constant(number + 1))
            case ast.Constant(value=str() as text) if texts:
                yield into(ast.Constant(f"XX{text}XX"))
            case ast.Constant(value=bytes() as raw):
                yield into(ast.Constant(b"XX" + raw + b"XX"))
            case ast.Call():
                if _name(node.func) in _FOR_CHECKERS or _is_log(node):
                    return
                yield from self.arguments(node, texts=texts)
                texts = texts and not _name(node.func).endswith("Error")
        if name == "test" and isinstance(node, ast.Name | ast.Attribute | ast.Call) and isinstance(holder, ast.If):
            yield into(ast.UnaryOp(ast.Not(), node))
        if isinstance(node, ast.JoinedStr):
            return
        for part, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                yield from self.expression(node, part, None, value, texts=texts)
            elif isinstance(value, list):
                for i, each in enumerate(value):
                    if isinstance(each, ast.expr):
                        yield from self.expression(node, part, i, each, texts=texts)
                    elif isinstance(each, ast.keyword) and each.arg != "message":
                        yield from self.expression(each, "value", None, each.value, texts=texts)
                    elif isinstance(each, ast.comprehension):
                        for j, condition in enumerate(each.ifs):
                            yield from self.expression(each, "ifs", j, condition, texts=texts)
                        yield from self.expression(each, "iter", None, each.iter, texts=texts)

    def arguments(self, call: ast.Call, *, texts: bool) -> Iterator[Mutation]:
        """Arguments that become None or go."""
        if not texts:  # of what is raised
            return
        for i, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred) or _is_none(argument):
                continue
            yield self.argument(call, "args", i, ast.Constant(None))
            if len(call.args) + len(call.keywords) > 1:
                yield self.argument(call, "args", i, None)
        for i, keyword in enumerate(call.keywords):
            if keyword.arg is not None and keyword.arg != "message":
                if not _is_none(keyword.value):
                    yield self.argument(call, "keywords", i, ast.keyword(keyword.arg, ast.Constant(None)))
                yield self.argument(call, "keywords", i, None)

    def argument(self, call: ast.Call, name: str, place: int, new: ast.AST | None) -> Mutation:
        old = getattr(call, name)[place]
        text = f"{_shown(call.func)}(.. {_shown(old)} ..) -> {'gone' if new is None else _shown(new)}"
        return self.made(old.value if isinstance(old, ast.keyword) else old, call, name, place, new, text)

    def made(
        self,
        old: ast.expr | ast.stmt,
        holder: ast.AST,
        name: str,
        place: int | None,
        new: ast.AST | None,
        text: str = "",
    ) -> Mutation:
        if new is not None:
            ast.copy_location(new, old)
            ast.fix_missing_locations(new)
            text = text or f"{_shown(old)} -> {_shown(new)}"
        return Mutation(old.lineno, self.scope, self.owner, text, holder, name, place, new)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 150 else text[:147] + "..."


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_log(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=verb, value=of):
            return verb in _LOGS and _name(of).lstrip("_") in {"log", "logger", "warnings"}
    return False

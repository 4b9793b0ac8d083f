"""Which names of a program stand for something of torch, function by function: a parameter called torch does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Scope:
    """The names that one function, class or file binds: "torch.nn.functional" for F, None for what is not torch's."""

    def __init__(self, parent: Scope | None, is_class: bool = False, is_comprehension: bool = False) -> None:
        self.parent, self.is_class, self.is_comprehension = parent, is_class, is_comprehension
        self.names: dict[str, str | None] = {}
        self.outer: set[str] = set()  # global and nonlocal ones

    def bind(self, name: str, target: str | None) -> None:
        """A name with several meanings is nobody's."""
        if name not in self.outer:
            self.names[name] = target if self.names.get(name, target) == target else None

    def find(self, name: str) -> str | None:
        """What a name stands for within the scope."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return None


def scopes(tree: ast.AST) -> dict[ast.Name, Scope]:
    """The scope that each name of a file is looked up in."""
    found: dict[ast.Name, Scope] = {}
    waiting: list[tuple[ast.AST, Scope]] = [(tree, Scope(None))]
    while waiting:  # in the order of the text; an expression may be deeper than Python calls
        node, scope = waiting.pop()
        if isinstance(node, ast.Name):
            found[node] = scope
        _bind(node, scope)
        waiting += reversed(_parts(node, scope))
    return found


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str | None]]:
    """(name, what it stands for) of an import; None for what is not of torch."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            full = alias.name if alias.asname else name
        else:
            name = alias.asname or alias.name
            full = f"{node.module or ''}.{alias.name}" if not node.level else ""
        yield name, full if full.partition(".")[0] == "torch" else None


def _bind(node: ast.AST, scope: Scope) -> None:
    """The names that one node binds in its scope."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name, target in targets(node):
            if target is not None or name not in scope.names:  # `import numpy as torch` where torch is missing
                scope.bind(name, target)
    elif isinstance(node, ast.Global | ast.Nonlocal):
        scope.outer.update(node.names)
    elif isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            scope.bind(node.id, None)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope.bind(node.name, None)
    elif isinstance(node, ast.NamedExpr):
        outer = scope
        while outer.is_comprehension and outer.parent is not None:  # (x := ...) in one binds around it
            outer = outer.parent
        outer.bind(node.target.id, None)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        scope.bind(node.rest, None)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        scope.bind(node.name, None)


def _parts(node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    """What a node is made of, each with its scope: defaults and decorators belong to where a definition stands."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
        return []  # `torch = None` where the import failed
    if isinstance(node, _FUNCTIONS):
        inner = Scope(scope)
        arguments = [one for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        outside: list[ast.AST | None] = [*node.args.defaults, *node.args.kw_defaults]
        outside += [one.annotation for one in arguments]
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        if not isinstance(node, ast.Lambda):
            outside += [*node.decorator_list, node.returns]
        for one in arguments:
            inner.bind(one.arg, None)
        return [*((one, scope) for one in outside if one is not None), *((one, inner) for one in body)]
    if isinstance(node, ast.ClassDef):
        inner = Scope(scope, is_class=True)
        around = [*node.decorator_list, *node.bases, *node.keywords]
        return [*((one, scope) for one in around), *((one, inner) for one in node.body)]
    if isinstance(node, _COMPREHENSIONS):  # its first iterable is computed where it stands
        inner, first = Scope(scope, is_comprehension=True), node.generators[0]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside: list[ast.AST] = [first.target, *first.ifs, *node.generators[1:], *results]
        return [(first.iter, scope), *((one, inner) for one in inside)]
    return [(one, scope) for one in ast.iter_child_nodes(node)]

"""The docstrings under the fields of a class, read from its source."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import ModuleType


def docstrings_of(model: type) -> dict[str, str]:
    """Of its fields, also inherited ones."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        found |= _docstrings_in(sys.modules.get(kind.__module__)).get(kind.__qualname__, {})
    return found


@functools.cache
def _docstrings_in(module: ModuleType | None) -> Mapping[str, dict[str, str]]:
    """Of the fields of each class; none without its source, as in a single-file executable."""
    if module is None:
        return {}
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return {}
    return {name: _under_fields(node) for name, node in _classes(tree, "")}


def _classes(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Each class with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield path + child.name, child
            yield from _classes(child, f"{path}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(child, f"{path}{child.name}.<locals>.")
        else:
            yield from _classes(child, path)


def _under_fields(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in pairwise(node.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found

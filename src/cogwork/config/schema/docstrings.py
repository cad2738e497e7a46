"""Read the docstrings below the fields of a class from its source."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import ModuleType


def field_docstrings(model: type) -> dict[str, str]:
    """Return the docstrings of the fields, including inherited fields."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        found |= _module_docstrings(sys.modules.get(kind.__module__)).get(kind.__qualname__, {})
    return found


@functools.cache
def _module_docstrings(module: ModuleType | None) -> Mapping[str, dict[str, str]]:
    """Return the field docstrings by class; empty without source, as in a frozen executable."""
    if module is None:
        return {}
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return {}
    return {name: _class_docstrings(node) for name, node in _find_classes(tree, "")}


def _find_classes(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield each class with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield path + child.name, child
            yield from _find_classes(child, f"{path}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _find_classes(child, f"{path}{child.name}.<locals>.")
        else:
            yield from _find_classes(child, path)


def _class_docstrings(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in pairwise(node.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found

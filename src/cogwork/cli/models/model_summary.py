"""What a model is, in one sentence: the docstring of the module that implements it."""

from __future__ import annotations

import importlib.util
import inspect
from importlib.abc import InspectLoader


def read_summary(module: str) -> str:
    """Return the first sentence of a module's docstring, without running the module.

    Drivers import their libraries, which may be missing. Return "" if there is no docstring.
    """
    try:
        spec = importlib.util.find_spec(module)
        loader = spec.loader if spec is not None else None
        code = loader.get_code(module) if isinstance(loader, InspectLoader) else None
    except (ImportError, ValueError, SyntaxError):
        return ""
    if code is None or "__doc__" not in code.co_names:
        return ""
    docstring = code.co_consts[0]
    return first_sentence(docstring) if isinstance(docstring, str) else ""


def first_sentence(docstring: str) -> str:
    paragraph = inspect.cleandoc(docstring).partition("\n\n")[0]
    text = " ".join(paragraph.split())
    sentence, period, _ = text.partition(". ")
    return f"{sentence}." if period else text

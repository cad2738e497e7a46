"""How a configuration uses a fragment: what an entry of `fragments` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

MAX_USES: Final = 200
"""Fragments in one configuration, with those inside of others."""
MAX_TEXT: Final = 100
"""Characters of an ID or a version, and of what a mistake quotes."""


class FragmentUse(NamedTuple):
    """How a configuration uses a fragment."""

    id: str
    version: str = ""
    """A revision or a tag; empty for the newest revision."""
    prefix: str = ""
    variables: Mapping[str, Any] = {}


class FragmentUnavailable(Exception):
    """A fragment that cannot be used. The text says why."""


Find = Callable[[FragmentUse], str]
"""Returns the configuration of a fragment as JSON. Raises FragmentUnavailable."""


def parse_use(item: Any) -> FragmentUse | None:
    """Return how an entry of `fragments` uses a fragment; None if it is invalid."""
    if isinstance(item, str):
        return FragmentUse(item) if 0 < len(item) <= MAX_TEXT else None
    if not isinstance(item, dict):
        return None
    fragment_id, variables = item.get("id"), item.get("variables", {})
    version, prefix = item.get("version", ""), item.get("prefix", "")
    texts = (fragment_id, version, prefix)
    if not all(isinstance(each, str) for each in texts) or not isinstance(variables, dict):
        return None
    if not fragment_id or max(len(fragment_id), len(version)) > MAX_TEXT:
        return None
    return FragmentUse(fragment_id, version, prefix, variables)

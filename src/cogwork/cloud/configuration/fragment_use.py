"""Parsing of `fragments`, the uses of fragments in a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

MAX_USES: Final = 200
"""Maximum number of fragments in one configuration, including nested ones."""
MAX_TEXT: Final = 100
"""Maximum length of an ID, of a version, and of quoted text in a mistake."""


class FragmentUse(NamedTuple):
    """One use of a fragment in a configuration."""

    id: str
    version: str = ""
    """A revision or a tag; empty for the newest revision."""
    prefix: str = ""
    variables: Mapping[str, Any] = {}


class FragmentUnavailable(Exception):
    """A fragment cannot be used. The message has the reason."""


Find = Callable[[FragmentUse], str]
"""Function that returns the configuration of a fragment as JSON, or raises FragmentUnavailable."""


def parse_use(item: Any) -> FragmentUse | None:
    """Parse an entry of `fragments`. Return None if it is invalid."""
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

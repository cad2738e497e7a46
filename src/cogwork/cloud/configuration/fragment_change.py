"""A change of a fragment that is not saved yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cogwork.cloud.configuration.fragment_use import Find, FragmentUse


class FragmentChange(NamedTuple):
    fragment: str
    texts: Mapping[str, str]
    """The changed configurations by revision or tag; "" is the newest revision."""

    def apply(self, find: Find) -> Find:
        """Return a lookup function that finds fragments as if the change were saved."""

        def find_changed(use: FragmentUse) -> str:
            if use.id == self.fragment and use.version in self.texts:
                return self.texts[use.version]
            return find(use)

        return find_changed

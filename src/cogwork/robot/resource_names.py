"""Resolves resource names of requests, and explains why a name is unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.sentences import join_names
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.unavailable import NotConfigured

_MAX_CHOICES = 200
"""Maximum names to compare with an unknown name."""
_MAX_HINTS = 20
"""Maximum names that an error lists."""


class ResourceNames:
    def __init__(self, known: Collection[ResourceName]) -> None:
        """Create a resolver. `known` are the names of all resources; the collection may change."""
        self._known = known
        self._remote_names: dict[tuple[Api, str], list[ResourceName]] = defaultdict(list)
        """Resources of remotes, by their names without the remote."""

    @property
    def any_remote(self) -> bool:
        return bool(self._remote_names)

    def set_discovered(self, names: Iterable[ResourceName]) -> None:
        """Set the names of the resources of other machines."""
        self._remote_names.clear()
        for name in names:
            if name.remote:
                self._remote_names[name.api, name.name].append(name)

    def resolve(self, name: ResourceName) -> ResourceName:
        """Return the full name of a resource. The name in a request may omit the remote.

        A resource of this machine takes precedence. Otherwise, add the remote if exactly one remote
        has a resource with this name.
        """
        if name.remote or name in self._known:
            return name
        found = self._remote_names.get((name.api, name.name), ())
        return found[0] if len(found) == 1 else name

    def explain_unknown(self, name: ResourceName) -> NotConfigured:
        return NotConfigured(
            f"no node found with api {name.api} and name {name.short}; {self._find_hint(name)}"
        )

    def _find_hint(self, name: ResourceName) -> str:
        if len(remote := self._remote_names.get((name.api, name.name), ())) > 1:
            return f"several remotes have it: write {' or '.join(each.short for each in remote)}"
        same_name = [other for other in self._known if other.short == name.short]
        if same_name:
            return f"{same_name[0]} has that name"
        # Put resources of this machine first, because remotes may have any number of resources.
        same_api = sorted(
            (bool(each.remote), each.short) for each in self._known if each.api == name.api
        )
        choices = [short for _, short in same_api]
        suggestion = did_you_mean(name.short, choices[:_MAX_CHOICES])
        if suggestion is not None:
            return suggestion
        return f"resources of this API: {join_names(choices, _MAX_HINTS) or 'none'}"

"""What the resources of another machine are called here. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cogwork.graph.name import (
    BUILTIN_FAMILY,
    BUILTIN_NAMESPACE,
    REMOTE_SEPARATOR,
    Api,
    ModelName,
    ResourceName,
)
from cogwork.graph.spec import Spec

REMOTE_API: Final = Api(BUILTIN_NAMESPACE, "remote", "")
"""The API of a remote itself, which is a node of the graph, too."""
REMOTE_MODEL: Final = ModelName(BUILTIN_NAMESPACE, BUILTIN_FAMILY, "remote")
MAX_HOPS: Final = 5
"""Machines between a client and a resource. Machines that are remotes of each other would
otherwise repeat their names without end."""
MAX_RESOURCES: Final = 10_000
"""Resources of one remote."""
_MAX_NAME: Final = 512
_DEFAULT_SERVICE: Final = "builtin"
"""Every machine has services of this name, which only concern itself."""


class RemoteName(NamedTuple):
    """The settings of a resource of a remote: where it is."""

    remote: str
    name: str
    """Its name on the other machine."""


def remote_spec(remote: str) -> Spec:
    """Return the node of the remote itself."""
    return Spec(ResourceName(REMOTE_API, remote), REMOTE_MODEL, RemoteName(remote, ""))


def resource_specs(remote: str, prefix: str, names: Iterable[tuple[Api, str]]) -> list[Spec]:
    """Return the nodes of a remote's resources: `camera` of `line2` is `line2:camera` here."""
    found: dict[ResourceName, Spec] = {}
    for api, name in names:
        short = f"{remote}{REMOTE_SEPARATOR}{prefix}{name}"
        if name == _DEFAULT_SERVICE or not _is_usable(api, short):
            continue
        here = ResourceName.from_short(api, short)
        found.setdefault(here, Spec(here, REMOTE_MODEL, RemoteName(remote, name)))
        if len(found) >= MAX_RESOURCES:
            break
    return list(found.values())


def _is_usable(api: Api, short: str) -> bool:
    words = short.split(REMOTE_SEPARATOR)
    return (
        all(api)
        and api.kind in ("component", "service")
        and all(words)
        and len(words) <= MAX_HOPS + 1
        and len(short) <= _MAX_NAME
    )

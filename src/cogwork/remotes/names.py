"""Names of another machine's resources on this machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from cogwork.graph.name import (
    BUILTIN_FAMILY,
    BUILTIN_NAMESPACE,
    REMOTE_SEPARATOR,
    Api,
    ModelName,
    ResourceName,
)
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.graph.spec import Spec

REMOTE_API: Final = Api(BUILTIN_NAMESPACE, "remote", "")
"""The API of the remote itself, which is also a node of the graph."""
REMOTE_MODEL: Final = ModelName(BUILTIN_NAMESPACE, BUILTIN_FAMILY, "remote")
MAX_HOPS: Final = 5
"""Maximum number of machines between a client and a resource. Without this limit, machines that are
remotes of each other would repeat their names endlessly."""
MAX_RESOURCES: Final = 1_000
"""Maximum number of resources of one remote."""
MAX_FOREIGN_APIS: Final = 50
"""Maximum number of APIs of one remote that this server does not implement. Each needs
descriptors."""
_MAX_NAME: Final = 512
_DEFAULT_SERVICE: Final = "builtin"
"""Name of the default services of every machine, which only concern that machine."""


class RemoteName(NamedTuple):
    """The settings of a remote resource: its location on the other machine."""

    remote: str
    name: str
    """Name of the resource on the other machine."""


def remote_spec(remote: str) -> Spec:
    """Return the node of the remote itself."""
    return Spec(ResourceName(REMOTE_API, remote), REMOTE_MODEL, RemoteName(remote, ""))


class ResourceList:
    """The resources that a remote lists, up to the limits: `camera` of `line2` is `line2:camera`.

    Resources of the previous list come first. Otherwise, a machine with too many resources would
    replace some whenever it lists them in another order.
    """

    def __init__(self, remote: str, prefix: str, present: Mapping[ResourceName, Spec]) -> None:
        self._remote = remote
        self._prefix = prefix
        self._present = present
        self._kept: dict[ResourceName, Spec] = {}
        self._added: dict[ResourceName, Spec] = {}
        self._foreign_apis = {name.api for name in present if name.api not in SERVICE_BY_API}
        self._left_out = 0

    def add(self, api: Api, name: str) -> None:
        short = f"{self._remote}{REMOTE_SEPARATOR}{self._prefix}{name}"
        if name == _DEFAULT_SERVICE or not _is_usable(api, short):
            return
        here = ResourceName.from_short(api, short)
        if here in self._present:
            self._kept[here] = self._present[here]
        elif here not in self._added:
            if len(self._added) < MAX_RESOURCES and self._accepts(api):
                self._added[here] = Spec(here, REMOTE_MODEL, RemoteName(self._remote, name))
            else:
                self._left_out += 1

    def _accepts(self, api: Api) -> bool:
        if api not in SERVICE_BY_API and api not in self._foreign_apis:
            if len(self._foreign_apis) >= MAX_FOREIGN_APIS:
                return False
            self._foreign_apis.add(api)
        return True

    @property
    def specs(self) -> dict[ResourceName, Spec]:
        """The nodes of the resources."""
        return dict(islice({**self._kept, **self._added}.items(), MAX_RESOURCES))

    @property
    def left_out(self) -> int:
        """Number of resources beyond the limits."""
        return self._left_out + max(0, len(self._kept) + len(self._added) - MAX_RESOURCES)


def _is_usable(api: Api, short: str) -> bool:
    words = short.split(REMOTE_SEPARATOR)
    return (
        all(api)
        and api.kind in ("component", "service")
        and all(words)
        and len(words) <= MAX_HOPS + 1
        and len(short) <= _MAX_NAME
        and len(api.namespace) + len(api.subtype) <= _MAX_NAME
    )

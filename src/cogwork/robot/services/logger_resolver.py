"""Assigns logger names to the log entries of modules and clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cogwork.core.errors import InvalidName
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.node import Node
from cogwork.logs.logger_names import (
    CLIENT_LOGGER_PREFIX,
    LIBRARY_LOGGERS,
    MODULE_LOGGER_PREFIX,
    RESOURCE_LOGGER_PREFIX,
    SERVER_LOGGERS,
)
from cogwork.robot.hosts import ModuleHost

_SEPARATOR = re.compile("[.:/]")
_RESERVED_ROOTS = frozenset(
    ("", "cogwork", *(name.partition(".")[0] for name in (*SERVER_LOGGERS, *LIBRARY_LOGGERS)))
)
"""First parts of the server's own logger names."""


class LoggerResolver:
    def __init__(
        self, nodes: Mapping[ResourceName, Node], modules: Callable[[], ModuleHost]
    ) -> None:
        self._nodes = nodes
        self._modules = modules

    def resolve(self, name: str, module: str) -> str:
        """Return the logger name to use for an entry. `module` sent the entry; empty for a client.

        A module may use the names of its resources: alone, as the SDK does, or after the module's
        own name, as Go modules do. Any other name is prefixed with the module's name. A client may
        use any name that nothing on this machine uses.
        """
        if not module:
            return _client_logger(name) if self._is_in_use(name) else name
        resource, child = _split_resource(name.removeprefix(f"{module}."))
        node = self._nodes.get(resource) if resource is not None else None
        if node is not None and self._modules().provides_model(
            module, node.spec.name.api, node.spec.model
        ):
            return f"{RESOURCE_LOGGER_PREFIX}{resource}{child}"
        return _module_logger(name, module)

    def _is_in_use(self, name: str) -> bool:
        """Return whether the server, a library, a module or a resource uses the name."""
        root = _SEPARATOR.split(name, maxsplit=1)[0]
        return (
            root in _RESERVED_ROOTS
            or _split_resource(name)[0] in self._nodes
            or any(root == module.name for module in self._modules().statuses())
            or any(root == resource.name for resource in self._nodes)
        )


def _client_logger(name: str) -> str:
    return f"{CLIENT_LOGGER_PREFIX}{name}" if name else CLIENT_LOGGER_PREFIX.removesuffix(".")


def _module_logger(name: str, module: str) -> str:
    # The SDK writes slashes instead of dots.
    own = name.replace("/", ".")
    if own in ("", module):
        return f"{MODULE_LOGGER_PREFIX}{module}"
    return f"{MODULE_LOGGER_PREFIX}{module}.{own.removeprefix(f'{module}.')}"


def _split_resource(name: str) -> tuple[ResourceName | None, str]:
    """Return the resource in a logger name, and the rest of the name, which starts with a dot."""
    # Replace the slash, too: older SDK releases write a dot there.
    api, *parts = name.replace("/", ".").split(".", 2)
    try:
        resource = ResourceName.from_short(Api.parse(api), parts[0]) if parts else None
    except InvalidName:
        resource = None
    return resource, "".join(f".{part}" for part in parts[1:])

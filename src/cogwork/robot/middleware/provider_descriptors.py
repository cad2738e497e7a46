"""How the module or remote that has a resource describes a method of its API."""

from __future__ import annotations

import contextlib
from collections.abc import MutableMapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.fetched_descriptors import (
    DescriptorBudget,
    NotDescribed,
    fetch_descriptors,
)

_MAX_DESCRIPTORS: Final = 4 << 20
"""Bytes of the descriptors of one service."""


class ProviderDescriptors:
    """Descriptors of public services, which a provider may have in another version than we do.

    They are fetched when they are first needed, and kept as long as the connection.
    """

    def __init__(self) -> None:
        self._pools: MutableMapping[ForwardChannel, dict[str, DescriptorPool | None]] = (
            WeakKeyDictionary()
        )

    async def describe(self, channel: ForwardChannel, path: str) -> MethodDescriptor | None:
        """Return the descriptor of a method; None if the provider does not describe it."""
        service, _, name = path.lstrip("/").rpartition("/")
        pool: Any = await self.find_pool(channel, service)
        if pool is None:
            return None
        found: MethodDescriptor | None = pool.FindServiceByName(service).methods_by_name.get(name)
        return found

    async def find_pool(self, channel: ForwardChannel, service: str) -> DescriptorPool | None:
        """Return a pool with the service; None if the provider does not describe it."""
        pools = self._pools.setdefault(channel, {})
        if service not in pools:
            found = None
            with contextlib.suppress(NotDescribed):
                budget = DescriptorBudget(_MAX_DESCRIPTORS)
                found = await fetch_descriptors(channel, service, budget)
            pools[service] = found
        return pools[service]

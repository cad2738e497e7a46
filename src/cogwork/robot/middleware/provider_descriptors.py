"""Descriptors of methods, as the module or remote that provides a resource reports them."""

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
"""Maximum size in bytes of the descriptors of one service."""


class ProviderDescriptors:
    """Descriptors of public services whose version may differ between the provider and this server.

    Descriptors are fetched on first use, and cached while the connection is open.
    """

    def __init__(self) -> None:
        self._pools: MutableMapping[ForwardChannel, dict[str, DescriptorPool | None]] = (
            WeakKeyDictionary()
        )

    async def describe(self, channel: ForwardChannel, path: str) -> MethodDescriptor | None:
        """Return the descriptor of a method; None if the provider reports none."""
        service, _, name = path.lstrip("/").rpartition("/")
        pool: Any = await self.find_pool(channel, service)
        if pool is None:
            return None
        found: MethodDescriptor | None = pool.FindServiceByName(service).methods_by_name.get(name)
        return found

    async def find_pool(self, channel: ForwardChannel, service: str) -> DescriptorPool | None:
        """Return a pool with the service; None if the provider reports no descriptors."""
        pools = self._pools.setdefault(channel, {})
        if service not in pools:
            found = None
            with contextlib.suppress(NotDescribed):
                budget = DescriptorBudget(_MAX_DESCRIPTORS)
                found = await fetch_descriptors(channel, service, budget)
            pools[service] = found
        return pools[service]

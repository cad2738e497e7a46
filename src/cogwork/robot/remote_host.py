"""The machine's interface to its remotes, independent of how they are reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.graph.name import Api


class RemoteHost(Protocol):
    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of the APIs that only remotes have."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of these services, by service."""


class NoRemotes:
    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

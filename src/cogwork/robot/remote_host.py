"""The machine's interface to its remotes, independent of how they are reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.graph.name import Api
from cogwork.robot.placed_frame import PlacedFrame


class RemoteHost(Protocol):
    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of the APIs that only remotes have."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of these services, by service."""

    def frames(self) -> Sequence[PlacedFrame]:
        """Return the frames of all remotes: the same sequence until they change."""


class NoRemotes:
    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

    def frames(self) -> Sequence[PlacedFrame]:
        return ()

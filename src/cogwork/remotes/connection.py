"""A connection to another machine, whatever carries it."""

from __future__ import annotations

from typing import Protocol

from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.metadata_channel import Pairs


class RemoteConnection(Protocol):
    """A connection that is open, and logged in."""

    @property
    def control(self) -> ForwardChannel:
        """Where this machine makes its own calls: those of its session."""

    @property
    def calls(self) -> ForwardChannel:
        """Where calls to resources are made."""

    @property
    def login(self) -> Pairs:
        """The metadata of each call that identifies this machine."""

    async def wait_until_lost(self) -> None: ...

    async def renew(self) -> None:
        """Make further calls of both kinds over other channels, if it can open some.

        Calls that have begun go on. Raise RemoteUnavailable.
        """

    async def aclose(self) -> None: ...

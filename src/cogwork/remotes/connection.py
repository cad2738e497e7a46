"""A connection to another machine, independent of the transport."""

from __future__ import annotations

from typing import Protocol

from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.metadata_channel import Pairs


class RemoteConnection(Protocol):
    """An open connection that is logged in."""

    @property
    def control(self) -> ForwardChannel:
        """The channel for this machine's own calls, which manage the session."""

    @property
    def calls(self) -> ForwardChannel:
        """The channel for calls to resources."""

    @property
    def login(self) -> Pairs:
        """The metadata that authenticates each call."""

    async def wait_until_lost(self) -> None: ...

    async def renew(self) -> None:
        """Open new channels for further calls, if the transport can.

        Active calls continue on the old channels. Raise RemoteUnavailable.
        """

    async def aclose(self) -> None: ...

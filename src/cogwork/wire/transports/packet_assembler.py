"""Assembles the messages of a call from packets, at both ends of a data channel. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import PacketMessage

from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.byte_budget import Hold
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE

PACKET_OVERHEAD = 64
"""Bytes that each packet counts toward the memory limit in addition to its data."""

Charge = Callable[[Hold, int], None]
"""Reserves memory for a packet of this size, or raises OverBudget."""


class AssembledMessage(NamedTuple):
    data: bytes
    charge: int
    """The memory reserved for the message, in bytes."""


class PacketAssembler:
    __slots__ = (
        "_charge",
        "_hold",
        "_label",
        "_packets",
        "_partial_charge",
        "_partial_size",
        "messages",
    )

    def __init__(self, label: str, hold: Hold, charge: Charge) -> None:
        """`label` names a message in errors, such as `reply`. `hold` reserves memory for the
        packets."""
        self.messages: deque[AssembledMessage] = deque()
        """Complete messages that were not read yet."""
        self._label = label
        self._hold = hold
        self._charge = charge
        self._packets: list[bytes] = []
        self._partial_size = self._partial_charge = 0

    def add(self, packet: PacketMessage) -> bool:
        """Add a packet, and return whether it completes a message.

        Raise InvalidRequest if the message is too large, or OverBudget.
        """
        data = packet.data
        size = len(data)
        if self._partial_size + size > MAX_REQUEST_SIZE:
            raise InvalidRequest(f"a {self._label} has more than {MAX_REQUEST_SIZE} bytes")
        hold = self._hold
        before = hold.size
        self._charge(hold, size)
        charge = hold.size - before
        is_complete = packet.eom
        if is_complete and not self._packets:  # most messages have a single packet
            self.messages.append(AssembledMessage(data, charge))
            return True
        self._packets.append(data)
        self._partial_size += size
        self._partial_charge += charge
        if is_complete:
            self.messages.append(AssembledMessage(b"".join(self._packets), self._partial_charge))
            self.drop_partial()
        return is_complete

    def drop_partial(self) -> None:
        """Drop the packets of an incomplete message. Their memory stays reserved."""
        self._packets, self._partial_size, self._partial_charge = [], 0, 0

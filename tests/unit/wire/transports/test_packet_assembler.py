"""Packets become messages, which are charged until they are taken."""

from __future__ import annotations

import pytest
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import PacketMessage

from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.byte_budget import ByteBudget, Hold, OverBudget
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE
from cogwork.wire.transports.packet_assembler import PACKET_OVERHEAD, PacketAssembler


@pytest.fixture
def hold() -> Hold:
    return Hold(ByteBudget("replies", total=1 << 30, per_client=1 << 30), "client")


@pytest.fixture
def assembler(hold: Hold) -> PacketAssembler:
    return PacketAssembler("reply", hold, _charge)


def _charge(hold: Hold, size: int) -> None:
    hold.acquire(size + PACKET_OVERHEAD)


def _packet(data: bytes, *, eom: bool = True) -> PacketMessage:
    return PacketMessage(data=data, eom=eom)


def test_messages_come_in_order_with_their_charges(hold: Hold, assembler: PacketAssembler) -> None:
    assert not assembler.add(_packet(b"ab", eom=False))
    assert not assembler.messages
    assert assembler.add(_packet(b"c"))
    assert assembler.add(_packet(b""))
    assert list(assembler.messages) == [
        (b"abc", 3 + 2 * PACKET_OVERHEAD),
        (b"", PACKET_OVERHEAD),
    ]
    assert hold.size == 3 + 3 * PACKET_OVERHEAD


def test_empty_packet_may_complete_a_message(assembler: PacketAssembler) -> None:
    assembler.add(_packet(b"", eom=False))
    assert assembler.add(_packet(b""))
    assert list(assembler.messages) == [(b"", 2 * PACKET_OVERHEAD)]


def test_dropped_packets_are_in_no_message(assembler: PacketAssembler) -> None:
    assembler.add(_packet(b"lost", eom=False))
    assembler.drop_partial()
    assembler.add(_packet(b"kept"))
    assert [each.data for each in assembler.messages] == [b"kept"]


def test_a_message_has_a_maximum_size(hold: Hold, assembler: PacketAssembler) -> None:
    half = bytes(MAX_REQUEST_SIZE // 2)
    assembler.add(_packet(half, eom=False))
    assembler.add(_packet(half, eom=False))
    held = hold.size
    with pytest.raises(InvalidRequest, match=f"a reply has more than {MAX_REQUEST_SIZE} bytes"):
        assembler.add(_packet(b"x"))
    assert hold.size == held


def test_packet_over_the_budget_is_refused() -> None:
    hold = Hold(ByteBudget("replies", total=1000, per_client=200), "client")
    assembler = PacketAssembler("reply", hold, _charge)
    assembler.add(_packet(b"first"))
    with pytest.raises(OverBudget):
        assembler.add(_packet(bytes(200)))
    assert [each.data for each in assembler.messages] == [b"first"]

from __future__ import annotations

from cogwork.webrtc.retransmissions import Retransmissions


def test_packet_is_sent_again_once_in_a_while() -> None:
    retransmissions = Retransmissions()
    assert retransmissions.choose([7, 8, 7], 0.0) == [7, 8]
    assert retransmissions.choose([8, 9], 0.05) == [9]
    assert retransmissions.choose([7, 8, 9], 0.2) == [7, 8, 9]
    assert not retransmissions.are_exhausted


def test_network_is_not_filled_with_packets_sent_again() -> None:
    retransmissions = Retransmissions()
    chosen = [
        number for turn in range(50) for number in retransmissions.choose(range(128), turn * 0.02)
    ]
    assert len(chosen) == 60
    assert retransmissions.are_exhausted
    assert retransmissions.choose(range(128), 2.0) == list(range(60))

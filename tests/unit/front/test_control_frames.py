"""Frames of a client without payload: how many are free, and how many a second are allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogwork.front.control_frames import ControlFrames
from cogwork.front.http2_frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ProtocolViolation,
)

LIMIT = 10
MAX_FREE_PINGS = 1000
PRIORITY_FRAME, UNKNOWN_FRAME = 0x2, 0xFA


@pytest.fixture
def control() -> ControlFrames:
    return ControlFrames(LIMIT, 0.0)


def count_accepted(receive: Callable[[], None], most: int = 3 * MAX_FREE_PINGS) -> int:
    for count in range(most):
        try:
            receive()
        except ProtocolViolation:
            return count
    return most


@pytest.mark.parametrize("kind", [DATA, PRIORITY_FRAME, SETTINGS, PING, UNKNOWN_FRAME])
@pytest.mark.parametrize("flags", [0, ACK])
def test_frames_without_a_cause_are_limited(control: ControlFrames, kind: int, flags: int) -> None:
    assert count_accepted(lambda: control.on_client_frame(kind, flags, 0.5)) == LIMIT
    control.on_client_frame(kind, flags, 1.5)


@pytest.mark.parametrize(("kind", "flags"), [(DATA, END_STREAM), (DATA, 0), (HEADERS, END_HEADERS)])
@pytest.mark.parametrize(("sent", "free"), [(1, 1), (700, 700), (1500, MAX_FREE_PINGS)])
def test_data_and_headers_of_the_server_make_pings_free(
    control: ControlFrames, kind: int, flags: int, sent: int, free: int
) -> None:
    for _ in range(sent):
        control.on_server_frame(kind, flags)
    assert count_accepted(lambda: control.on_client_frame(PING, 0, 0.5)) == free + LIMIT


@pytest.mark.parametrize(
    ("kind", "flags"),
    [(RST_STREAM, 0), (WINDOW_UPDATE, 0), (SETTINGS, 0), (SETTINGS, ACK), (PING, 0), (PING, ACK)],
)
def test_other_frames_of_the_server_make_no_ping_free(
    control: ControlFrames, kind: int, flags: int
) -> None:
    for _ in range(100):
        control.on_server_frame(kind, flags)
    assert count_accepted(lambda: control.on_client_frame(PING, 0, 0.5)) == LIMIT


@pytest.mark.parametrize("kind", [DATA, PRIORITY_FRAME, SETTINGS, UNKNOWN_FRAME])
def test_only_pings_are_free(control: ControlFrames, kind: int) -> None:
    for _ in range(100):
        control.on_server_frame(DATA, 0)
    assert count_accepted(lambda: control.on_client_frame(kind, 0, 0.5)) == LIMIT


@pytest.mark.parametrize("kind", [PING, SETTINGS])
def test_one_acknowledgement_of_each_frame_is_free(control: ControlFrames, kind: int) -> None:
    for _ in range(50):
        control.on_server_frame(kind, 0)
        control.on_server_frame(kind, ACK)
    assert count_accepted(lambda: control.on_client_frame(kind, ACK, 0.5)) == 50 + LIMIT

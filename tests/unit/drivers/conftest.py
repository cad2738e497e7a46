"""Drivers are called as by a client, over each kind of channel."""

from __future__ import annotations

import functools

import pytest
from tests.contract.conftest import grpc_core
from tests.support.machine.served import CHANNELS, Serve, served
from tests.unit.drivers.gpio.wiring import RecordingBoard

from cogwork.core.clock import ManualClock

__all__ = ["grpc_core"]


@pytest.fixture(params=CHANNELS)
def serve(request: pytest.FixtureRequest) -> Serve:
    return functools.partial(served, by=request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def board(clock: ManualClock) -> RecordingBoard:
    """Return a board that records every change of its pins."""
    return RecordingBoard(clock)

"""What a contract reports about a misbehaving driver."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import pytest
from tests.support.waiting import block, run_others

from cogwork.contracts.harness import Harness, running_harness
from cogwork.contracts.sensor import SensorContract
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.sdk.adapter import model_from_sdk_class

assert sdk.VERSION  # it comes before anything else of the SDK
from grpclib import GRPCError, Status  # noqa: E402
from viam.components.sensor import Sensor  # noqa: E402
from viam.components.sensor.client import SensorClient  # noqa: E402
from viam.resource.easy_resource import EasyResource  # noqa: E402

Read = Callable[["Thermometer"], Awaitable[Mapping[str, Any]]]
Judge = Callable[[SensorContract, Harness], Awaitable[None]]

CELSIUS = {"celsius": 20.0}
SLOW = 0.6
"""Seconds, longer than a driver may block the event loop."""


async def read_correctly(_: Thermometer) -> Mapping[str, Any]:
    return CELSIUS


async def pause_once(it: Thermometer) -> Mapping[str, Any]:
    """Pause like a busy computer."""
    if not it.paused:
        it.paused = True
        block(SLOW)
    return CELSIUS


async def block_loop(_: Thermometer) -> Mapping[str, Any]:
    block(SLOW)  # this is the mistake
    return CELSIUS


async def block_loop_before_an_error(_: Thermometer) -> Mapping[str, Any]:
    block(SLOW)  # this is the mistake
    raise GRPCError(Status.UNAVAILABLE, "there is no such port")


async def raise_key_error(_: Thermometer) -> Mapping[str, Any]:
    raise KeyError("celsius")


async def hang(_: Thermometer) -> Mapping[str, Any]:
    await asyncio.Event().wait()
    return CELSIUS


async def fail_without_message(_: Thermometer) -> Mapping[str, Any]:
    raise GRPCError(Status.UNAVAILABLE, "E17")


async def raise_not_implemented(_: Thermometer) -> Mapping[str, Any]:
    raise NotImplementedError


class Thermometer(Sensor, EasyResource):  # type: ignore[misc, no-untyped-call]
    MODEL: ClassVar[Any] = "acme:contract:thermometer"

    read: ClassVar[Read] = read_correctly
    left: ClassVar[Callable[[], object] | None] = None
    """Target of a thread that the driver does not end."""
    paused = False

    @classmethod
    def new(cls, config: Any, dependencies: Any) -> Any:
        del dependencies
        if cls.left is not None:
            threading.Thread(target=cls.left, name="poll the bus").start()
        return cls(config.name)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return await type(self).read(self)


class ThermometerContract(SensorContract):
    __test__ = False
    model = str(Thermometer.MODEL)
    models = (model_from_sdk_class(Thermometer),)


every_method = ThermometerContract.test_every_method_answers_or_explains
closed = ThermometerContract.test_close_leaves_nothing_running


async def run_contract(*judges: Judge) -> None:
    async with running_harness(ThermometerContract.models) as made:
        await made.run(ThermometerContract.resource_config())
        for each in judges:
            await each(ThermometerContract(), made)


async def test_driver_that_never_answers_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thermometer, "read", hang)
    monkeypatch.setattr("cogwork.contracts.harness.CALL_TIMEOUT", 0.2)
    async with running_harness(ThermometerContract.models) as made:
        await made.run(ThermometerContract.resource_config())
        with pytest.raises(TimeoutError):
            await SensorClient("it", made.channel).get_readings()


@pytest.mark.parametrize("read", [read_correctly, pause_once])
async def test_correct_driver_passes(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thermometer, "read", read)
    await run_contract(every_method, closed)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (block_loop, r"GetReadings blocked the event loop for 0\.\ds; run it in a thread"),
        (block_loop_before_an_error, "GetReadings blocked the event loop"),
        (raise_key_error, "GetReadings failed with (UNKNOWN|INTERNAL): "),
        (fail_without_message, "GetReadings failed without a message: UNAVAILABLE: E17"),
        (
            raise_not_implemented,
            'GetReadings is not implemented; implement it or add it to "unsupported_methods"',
        ),
    ],
)
async def test_failing_calls_are_reported(
    read: Read, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thermometer, "read", read)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=words):
        await run_contract(every_method)


async def test_thread_left_running_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.contracts.contract.TIMEOUT", 0.1)
    ended = threading.Event()
    monkeypatch.setattr(Thermometer, "left", ended.wait)
    try:
        with pytest.raises(AssertionError, match=r"still running after close: .*poll the bus"):
            await run_contract(closed)
    finally:
        ended.set()
        await run_others()

"""What a contract finds out about a driver that misbehaves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import pytest

from cogwork.contracts.harness import Harness, running_harness
from cogwork.contracts.sensor import SensorContract
from cogwork.resource import sdk
from cogwork.resource.sdk_adapter import model_from_sdk_class

assert sdk.VERSION  # it comes before anything else of the SDK
from grpclib import GRPCError, Status  # noqa: E402
from viam.components.sensor import Sensor  # noqa: E402
from viam.components.sensor.client import SensorClient  # noqa: E402
from viam.resource.easy_resource import EasyResource  # noqa: E402

Read = Callable[["Thermometer"], Awaitable[Mapping[str, Any]]]
Judge = Callable[[SensorContract, Harness], Awaitable[None]]

CELSIUS = {"celsius": 20.0}
SLOW = 0.6
"""Seconds, more than anybody may hold up the others."""


async def well(_: Thermometer) -> Mapping[str, Any]:
    return CELSIUS


async def paused_once(it: Thermometer) -> Mapping[str, Any]:
    """As by a computer that is busy."""
    if not it.paused:
        it.paused = True
        time.sleep(SLOW)  # noqa: ASYNC251
    return CELSIUS


async def blocking(_: Thermometer) -> Mapping[str, Any]:
    time.sleep(SLOW)  # noqa: ASYNC251 - this is the mistake
    return CELSIUS


async def blocking_ahead_of_a_refusal(_: Thermometer) -> Mapping[str, Any]:
    time.sleep(SLOW)  # noqa: ASYNC251 - this is the mistake
    raise GRPCError(Status.UNAVAILABLE, "there is no such port")


async def breaking(_: Thermometer) -> Mapping[str, Any]:
    raise KeyError("celsius")


async def hanging(_: Thermometer) -> Mapping[str, Any]:
    await asyncio.Event().wait()
    return CELSIUS


async def wordless(_: Thermometer) -> Mapping[str, Any]:
    raise GRPCError(Status.UNAVAILABLE, "E17")


async def unwritten(_: Thermometer) -> Mapping[str, Any]:
    raise NotImplementedError


class Thermometer(Sensor, EasyResource):  # type: ignore[misc, no-untyped-call]
    MODEL: ClassVar[Any] = "acme:contract:thermometer"

    read: ClassVar[Read] = well
    left: ClassVar[Callable[[], object] | None] = None
    """What a thread of it does that nobody ends."""
    paused = False

    @classmethod
    def new(cls, config: Any, dependencies: Any) -> Any:
        del dependencies
        if cls.left is not None:
            threading.Thread(target=cls.left, name="poll the bus").start()
        return cls(config.name)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return await type(self).read(self)


class TheContract(SensorContract):
    __test__ = False
    model = str(Thermometer.MODEL)
    models = (model_from_sdk_class(Thermometer),)


every_method = TheContract.test_every_method_answers_or_explains
closed = TheContract.test_close_leaves_nothing_running


async def judge(*judges: Judge) -> None:
    async with running_harness(TheContract.models) as made:
        await made.run(TheContract.resource_config())
        for each in judges:
            await each(TheContract(), made)


async def test_one_that_never_answers_hangs_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thermometer, "read", hanging)
    monkeypatch.setattr("cogwork.contracts.harness.CALL_TIMEOUT", 0.2)
    async with running_harness(TheContract.models) as made:
        await made.run(TheContract.resource_config())
        with pytest.raises(TimeoutError):
            await SensorClient("it", made.channel).get_readings()


@pytest.mark.parametrize("read", [well, paused_once])
async def test_nothing_about_one_that_does_its_work(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thermometer, "read", read)
    await judge(every_method, closed)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (blocking, r"GetReadings blocked the event loop for 0\.\ds; run it in a thread"),
        (blocking_ahead_of_a_refusal, "GetReadings blocked the event loop"),
        (breaking, "GetReadings failed with (UNKNOWN|INTERNAL): "),
        (wordless, "GetReadings failed without a message: UNAVAILABLE: E17"),
        (unwritten, 'GetReadings is not implemented; implement it or add it to "lacks"'),
    ],
)
async def test_a_call_that_goes_wrong(
    read: Read, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thermometer, "read", read)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=words):
        await judge(every_method)


async def test_what_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.contracts.contract.TIMEOUT", 0.1)
    ended = threading.Event()
    monkeypatch.setattr(Thermometer, "left", ended.wait)
    try:
        with pytest.raises(AssertionError, match=r"still running after close: .*poll the bus"):
            await judge(closed)
    finally:
        ended.set()
        await asyncio.sleep(0)

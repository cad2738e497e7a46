"""RobotService: every method of its descriptor answers, or says why it does not."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status
from tests.served import refused
from tests.unit.robot.bench import ROBOT, Bench, InProcess, thing
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.version_metadata import API_VERSION

from cogwork import __version__
from cogwork.core.clock import SystemClock
from cogwork.robot.log_service import LogService
from cogwork.robot.robot_service import REFUSALS

METHODS = robot.DESCRIPTOR.services_by_name["RobotService"].methods_by_name
REFUSED = ["GetStatus", "SendTraces", "StreamStatus", "UploadDataFromPath"]
CLOUD = {
    "id": "part",
    "secret": "s3cret",
    "primary_org_id": "org",
    "location_id": "place",
    "machine_id": "machine",
}


def test_what_is_refused() -> None:
    assert sorted(REFUSALS) == REFUSED


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refusal_is_a_sentence(bench: Bench, name: str) -> None:
    request = GetMessageClass(METHODS[name].input_type)()
    with refused() as told:
        await bench.call(f"{ROBOT}/{name}", request)
    assert told.status is Status.UNIMPLEMENTED
    assert told.words.startswith(f"{name} ")
    assert " is not served: " in told.words or "; use " in told.words


async def test_the_version(bench: Bench) -> None:
    version = await bench.ask("GetVersion")
    assert (version.platform, version.version, version.api_version) == (
        "rdk",
        __version__,
        API_VERSION,
    )


async def test_without_a_cloud_there_is_no_word_of_it(bench: Bench) -> None:
    await bench.apply(thing("a"))
    with refused() as told:
        await bench.ask("GetCloudMetadata")
    assert told.status is Status.FAILED_PRECONDITION
    assert told.words == "cloud metadata not available: this machine runs without a cloud"


async def test_what_is_known_of_the_cloud(bench: Bench) -> None:
    await bench.apply(thing("a"), cloud=CLOUD)
    told = await bench.ask("GetCloudMetadata")
    assert (told.primary_org_id, told.location_id, told.machine_id, told.machine_part_id) == (
        "org",
        "place",
        "machine",
        "part",
    )


async def test_a_shutdown_says_who_asked(bench: Bench) -> None:
    await bench.ask("Shutdown", peer="ipv4:192.0.2.7:1234")
    assert bench.asked_to_shut_down == ["requested by ipv4:192.0.2.7:1234"]


class TestLog:
    """Modules and clients write to the machine's log."""

    async def test_a_line_is_written_as_it_was_sent(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        moment = datetime.fromtimestamp(bench.clock.time() - 3600, UTC).replace(microsecond=123_000)
        await bench.ask("Log", log(entry("acme.lamp", "warn", "100% bright %s", moment)))
        (record,) = caplog.records
        assert (record.name, record.levelname, record.getMessage()) == (
            "acme.lamp",
            "WARNING",
            "100% bright %s",
        )
        assert record.created == pytest.approx(moment.timestamp(), abs=1e-3)
        assert round(record.msecs) == 123

    @pytest.mark.parametrize(
        ("level", "written"),
        [
            ("debug", logging.DEBUG),
            ("Info", logging.INFO),
            ("WARN", logging.WARNING),
            ("warning", logging.WARNING),
            ("error", logging.ERROR),
            ("CRITICAL", logging.CRITICAL),
            ("fatal", logging.CRITICAL),
        ],
    )
    async def test_every_level_is_known(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, level: str, written: int
    ) -> None:
        await bench.ask("Log", log(entry("", level, "x")))
        assert [(each.name, each.levelno) for each in caplog.records] == [("rdk", written)]

    async def test_an_unknown_level_is_refused_and_nothing_is_written(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        with refused() as told:
            await bench.ask("Log", log(entry("a", "info", "x"), entry("a", "loud", "y")))
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words.startswith('"loud" is not a log level; use one of debug, info')
        assert caplog.records == []

    @pytest.mark.parametrize("apart", [-86_401.0, 3_601.0, 253_402_299_999.0 - 1_000_000])
    async def test_a_time_far_from_ours_is_ours(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, apart: float
    ) -> None:
        claimed = datetime.fromtimestamp(bench.clock.time() + apart, UTC)
        await bench.ask("Log", log(entry("a", "info", "x", claimed)))
        (record,) = caplog.records
        assert record.created == bench.clock.time()
        assert getattr(record, "fields", {}) == {
            "client_time": f"{claimed:%Y-%m-%dT%H:%M:%S.000Z}",
        }

    @pytest.mark.parametrize("apart", [-86_399.0, 3_599.0])
    async def test_a_time_near_ours_is_kept(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, apart: float
    ) -> None:
        claimed = datetime.fromtimestamp(bench.clock.time() + apart, UTC)
        await bench.ask("Log", log(entry("a", "info", "x", claimed)))
        (record,) = caplog.records
        assert record.created == claimed.timestamp()
        assert not hasattr(record, "fields")

    async def test_many_lines_leave_others_their_turn(self, bench: Bench) -> None:
        service = LogService(lambda _: time.sleep(0.002), SystemClock())
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(take_turns())
        await service.log(log(*[entry("a", "debug", "x")] * 50), InProcess(None))
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert turns >= 4

    @pytest.mark.parametrize("seconds", [None, 2**62, -(2**62), 253402300800])
    async def test_a_time_that_is_none_is_now(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, seconds: int | None
    ) -> None:
        before = datetime.now(UTC).timestamp()
        line = entry("a", "info", "x")
        if seconds is not None:
            line.time.CopyFrom(Timestamp(seconds=seconds))
        await bench.ask("Log", log(line))
        (record,) = caplog.records
        assert before - 1 <= record.created <= before + 10
        assert logging.Formatter("%(asctime)s").format(record)

    async def test_a_module_cannot_log_in_the_name_of_the_server(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bench.ask("Log", log(entry("rdk.networking", "info", "x")), peer="module:acme")
        assert [each.name for each in caplog.records] == ["rdk.modmanager.acme.rdk.networking"]

    async def test_names_that_clients_make_up_are_not_kept(self, bench: Bench) -> None:
        known = set(logging.root.manager.loggerDict)
        for number in range(20):
            await bench.ask("Log", log(entry(f"made.up.{number}", "info", "x")))
        assert not set(logging.root.manager.loggerDict) - known


def entry(name: str, level: str, message: str, moment: datetime | None = None) -> common.LogEntry:
    made = common.LogEntry(logger_name=name, level=level, message=message)
    if moment is not None:
        made.time.FromDatetime(moment)
    return made


def log(*entries: common.LogEntry) -> robot.LogRequest:
    return robot.LogRequest(logs=entries)


async def test_names_are_told_as_they_stand_in_the_file_even_wrong_ones(bench: Bench) -> None:
    """A node with an impossible name is there to say what is wrong with it."""
    odd: dict[str, Any] = {**thing("a"), "name": "naïve name\n"}
    bench.begin(json.dumps({"components": [odd, thing("b")]}))
    await bench.clock.settle()
    names = [each.name for each in (await bench.ask("ResourceNames")).resources]
    assert names == ["naïve name\n", "b"]
    status = await bench.ask("GetMachineStatus")
    assert [each.state for each in status.resources] == [
        robot.ResourceStatus.STATE_UNHEALTHY,
        robot.ResourceStatus.STATE_READY,
    ]

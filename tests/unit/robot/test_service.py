"""RobotService: every method of its descriptor answers, or says why it does not."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status
from tests.served import refused
from tests.unit.robot.bench import ROBOT, Bench, thing
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.version_metadata import API_VERSION

from cogwork import __version__
from cogwork.robot.service import REFUSALS

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
    assert bench.asked_to_shut_down == ["asked to by ipv4:192.0.2.7:1234"]


class TestLog:
    """Modules and clients write to the machine's log."""

    async def test_a_line_is_written_as_it_was_sent(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        moment = datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)
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
        assert told.words.startswith('"loud" is not a log level; it is one of debug, info')
        assert caplog.records == []

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

"""RobotService: every method answers or is refused with a reason."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.support.waiting import block, run_others
from tests.unit.robot.bench import ROBOT, Bench, InProcess, thing
from tests.unit.robot.middleware.test_access import LimitedModules
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.version_metadata import API_VERSION

from cogwork import __version__
from cogwork.core.clock import SystemClock
from cogwork.logs.entry import Entry
from cogwork.logs.pipeline import EXTRA_LINES, Pipeline
from cogwork.logs.redactor import Redactor
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.services.log import LogService
from cogwork.robot.services.robot import REFUSALS

METHODS = robot.DESCRIPTOR.services_by_name["RobotService"].methods_by_name
REFUSED_METHODS = ["GetStatus", "SendTraces", "StreamStatus", "UploadDataFromPath"]
CLOUD = {
    "id": "part",
    "secret": "s3cret",
    "primary_org_id": "org",
    "location_id": "place",
    "machine_id": "machine",
}


def test_refused_methods() -> None:
    assert sorted(REFUSALS) == REFUSED_METHODS


@pytest.mark.parametrize("name", REFUSED_METHODS)
async def test_refused_method_has_a_reason(bench: Bench, name: str) -> None:
    request = GetMessageClass(METHODS[name].input_type)()
    with refused() as error:
        await bench.call(f"{ROBOT}/{name}", request)
    assert error.status is Status.UNIMPLEMENTED
    assert error.words.startswith(f"{name} ")
    assert " is not served: " in error.words or "; use " in error.words


async def test_get_version(bench: Bench) -> None:
    version = await bench.call_robot("GetVersion")
    assert (version.platform, version.version, version.api_version) == (
        "rdk",
        f"cogwork-{__version__}",
        API_VERSION,
    )


async def test_cloud_metadata_without_a_cloud_is_refused(bench: Bench) -> None:
    await bench.apply(thing("a"))
    with refused() as error:
        await bench.call_robot("GetCloudMetadata")
    assert error.status is Status.FAILED_PRECONDITION
    assert error.words == "cloud metadata not available: this machine runs without a cloud"


async def test_cloud_metadata_has_the_ids(bench: Bench) -> None:
    await bench.apply(thing("a"), cloud=CLOUD)
    metadata = await bench.call_robot("GetCloudMetadata")
    assert (
        metadata.primary_org_id,
        metadata.location_id,
        metadata.machine_id,
        metadata.machine_part_id,
    ) == (
        "org",
        "place",
        "machine",
        "part",
    )


async def test_shutdown_reason_has_the_peer(bench: Bench) -> None:
    await bench.call_robot("Shutdown", peer="ipv4:192.0.2.7:1234")
    assert bench.shutdown_reasons == ["requested by ipv4:192.0.2.7:1234"]


class TestLog:
    """Modules and clients write to the machine's log."""

    async def test_log_line_is_written_unchanged(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        moment = datetime.fromtimestamp(bench.clock.time() - 3600, UTC).replace(microsecond=123_000)
        await bench.call_robot(
            "Log", log_request(log_entry("acme.lamp", "warn", "100% bright %s", moment))
        )
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
    async def test_every_log_level_is_mapped(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, level: str, written: int
    ) -> None:
        await bench.call_robot("Log", log_request(log_entry("", level, "x")))
        assert [(each.name, each.levelno) for each in caplog.records] == [("client", written)]

    async def test_entry_with_an_unknown_level_drops_only_itself(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        with refused() as error:
            await bench.call_robot(
                "Log",
                log_request(
                    log_entry("a", "info", "x"),
                    log_entry("a", "loud", "y"),
                    log_entry("a", "info", "z"),
                ),
            )
        assert error.status is Status.INVALID_ARGUMENT
        assert error.words.startswith('"loud" is not a log level; use one of debug, info')
        assert error.words.endswith("(dropped 1 of 3 entries)")
        assert [each.getMessage() for each in caplog.records] == ["x", "z"]

    @pytest.mark.parametrize("apart", [-86_401.0, 3_601.0, 253_402_299_999.0 - 1_000_000])
    async def test_log_time_far_from_the_server_time_is_replaced(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, apart: float
    ) -> None:
        claimed = datetime.fromtimestamp(bench.clock.time() + apart, UTC)
        await bench.call_robot("Log", log_request(log_entry("a", "info", "x", claimed)))
        (record,) = caplog.records
        assert record.created == bench.clock.time()
        assert getattr(record, "fields", {}) == {
            "client_time": f"{claimed:%Y-%m-%dT%H:%M:%S.000Z}",
        }

    @pytest.mark.parametrize("apart", [-86_399.0, 3_599.0])
    async def test_log_time_near_the_server_time_is_kept(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, apart: float
    ) -> None:
        claimed = datetime.fromtimestamp(bench.clock.time() + apart, UTC)
        await bench.call_robot("Log", log_request(log_entry("a", "info", "x", claimed)))
        (record,) = caplog.records
        assert record.created == claimed.timestamp()
        assert not hasattr(record, "fields")

    async def test_many_log_lines_do_not_block_the_loop(self, bench: Bench) -> None:
        def slow(name: str, module: str) -> str:
            block(0.002)
            return name

        service = LogService(slow, SystemClock())
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await run_others()

        other = asyncio.ensure_future(take_turns())
        await service.log(
            log_request(*[log_entry(f"a{number}", "debug", "x") for number in range(50)]),
            InProcess(None),
        )
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert turns >= 4

    async def test_invalid_nanoseconds_do_not_drop_the_batch(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        lines = [log_entry("a", "info", "x"), log_entry("a", "info", "y")]
        lines[0].time.CopyFrom(Timestamp(seconds=round(bench.clock.time()), nanos=2**31 - 1))
        await bench.call_robot("Log", log_request(*lines))
        assert [each.getMessage() for each in caplog.records] == ["x", "y"]

    async def test_location_before_the_message_is_separated(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The Python SDK writes it there, followed by a tab."""
        await bench.call_robot("Log", log_request(log_entry("a", "info", "motor.py:12\tit\tturns")))
        (record,) = caplog.records
        assert (record.filename, record.lineno) == ("motor.py", 12)
        assert record.getMessage() == "it  turns"

    async def test_entries_obey_the_rules_under_their_own_name(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        levels = {"a": logging.ERROR, "rdk.modmanager.acme.a": logging.WARNING}
        table = build_handler_table(
            bench.machine, bench.clock, lambda _: None, lambda logger, _: levels.get(logger, 0)
        )
        bench.table = table
        entries = [log_entry("a", level, level) for level in ("info", "warn", "error")]
        await bench.call_robot("Log", log_request(*entries))
        assert [each.getMessage() for each in caplog.records] == ["error"]
        caplog.clear()
        await bench.call_robot("Log", log_request(*entries), peer="module:acme")
        assert [each.getMessage() for each in caplog.records] == ["warn", "error"]

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            ("acme.lamp", "acme.lamp"),
            ("rdk", "client.rdk"),
            ("rdk.networking", "client.rdk.networking"),
            ("rdk:component:generic/thing", "client.rdk:component:generic/thing"),
            ("rdk.resource_manager.x", "client.rdk.resource_manager.x"),
            ("thing", "client.thing"),
            ("thing.bus", "client.thing.bus"),
            ("things", "things"),
            ("asyncio", "client.asyncio"),
        ],
    )
    async def test_client_cannot_log_under_a_name_in_use(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, name: str, kept: str
    ) -> None:
        await bench.apply({"name": "thing", "api": "rdk:component:generic", "model": "thing"})
        caplog.clear()
        await bench.call_robot("Log", log_request(log_entry(name, "info", "x")))
        assert [each.name for each in caplog.records] == [kept]

    @pytest.mark.parametrize("seconds", [None, 2**62, -(2**62), 253402300800])
    async def test_invalid_log_time_is_replaced_by_the_current_time(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, seconds: int | None
    ) -> None:
        before = datetime.now(UTC).timestamp()
        line = log_entry("a", "info", "x")
        if seconds is not None:
            line.time.CopyFrom(Timestamp(seconds=seconds))
        await bench.call_robot("Log", log_request(line))
        (record,) = caplog.records
        assert before - 1 <= record.created <= before + 10
        assert logging.Formatter("%(asctime)s").format(record)

    async def test_module_cannot_log_under_a_server_logger(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bench.call_robot(
            "Log", log_request(log_entry("rdk.networking", "info", "x")), peer="module:acme"
        )
        assert [each.name for each in caplog.records] == ["rdk.modmanager.acme.rdk.networking"]

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            ("acme.rdk:component:generic/hers", "rdk.resource_manager.rdk:component:generic/hers"),
            ("rdk:component:generic/hers", "rdk.resource_manager.rdk:component:generic/hers"),
            ("acme.rdk:component:generic/other", "rdk.modmanager.acme.rdk:component:generic.other"),
            ("acme.lamp", "rdk.modmanager.acme.lamp"),
            ("acme", "rdk.modmanager.acme"),
        ],
    )
    async def test_module_logs_under_its_resources_as_go_names_them(
        self, bench: Bench, caplog: pytest.LogCaptureFixture, name: str, kept: str
    ) -> None:
        bench.machine.modules = LimitedModules()
        await bench.apply(thing("hers", "mutable"), thing("other"))
        caplog.clear()
        await bench.call_robot("Log", log_request(log_entry(name, "info", "x")), peer="module:acme")
        assert [each.name for each in caplog.records] == [kept]

    async def test_fields_caller_and_stack_are_kept_masked_and_bounded(self, bench: Bench) -> None:
        line = log_entry("acme.lamp", "info", "")
        line.caller.update({"File": "/home/me/lamp/main.go", "Line": 42})
        line.stack = "goroutine 1\nmain.go s3cret"
        line.fields.add().update({"Key": "key", "Type": 15, "String": "s3cret", "Integer": 0})
        line.fields.add().update({"Key": "on", "Type": 4, "String": "", "Integer": 1})
        line.fields.add().update({"big": "x" * 40_000})
        entries: list[Entry] = []
        redactor = Redactor()
        redactor.add_secrets(["s3cret"])
        pipeline = Pipeline(bench.clock, [entries.append], redactor=redactor)
        root = logging.getLogger("rdk")
        root.addHandler(pipeline)
        try:
            await bench.call_robot("Log", log_request(line))
        finally:
            root.removeHandler(pipeline)
            pipeline.close()
        (entry,) = entries
        assert (entry.place, entry.message) == ("lamp/main.go:42", "")
        assert entry.trace == "goroutine 1\nmain.go ***"
        assert list(entry.fields) == ["key", "on", "big"]
        assert (entry.fields["key"], entry.fields["on"]) == ("***", True)
        assert len(entry.fields["big"]) < 33_000

    async def test_empty_stack_of_the_python_sdk_is_dropped(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        line = log_entry("acme.lamp", "info", "on")
        line.stack = "exc_info: None, exc_text: None, stack_info: None"
        await bench.call_robot("Log", log_request(line))
        assert caplog.records[-1].getMessage() == "on"
        assert not hasattr(caplog.records[-1], EXTRA_LINES)

    async def test_logger_names_of_clients_are_not_kept(self, bench: Bench) -> None:
        known = set(logging.root.manager.loggerDict)
        for number in range(20):
            await bench.call_robot("Log", log_request(log_entry(f"made.up.{number}", "info", "x")))
        assert not set(logging.root.manager.loggerDict) - known


def log_entry(
    name: str, level: str, message: str, moment: datetime | None = None
) -> common.LogEntry:
    result = common.LogEntry(logger_name=name, level=level, message=message)
    if moment is not None:
        result.time.FromDatetime(moment)
    return result


def log_request(*entries: common.LogEntry) -> robot.LogRequest:
    return robot.LogRequest(logs=entries)


async def test_resource_names_include_invalid_names(bench: Bench) -> None:
    """A node with an invalid name exists to report what is wrong with it."""
    odd: dict[str, Any] = {**thing("a"), "name": "naïve name\n"}
    bench.start_apply(json.dumps({"components": [odd, thing("b")]}))
    await bench.clock.settle()
    names = [each.name for each in (await bench.call_robot("ResourceNames")).resources]
    assert names == ["naïve name\n", "b"]
    status = await bench.call_robot("GetMachineStatus")
    assert [each.state for each in status.resources] == [
        robot.ResourceStatus.STATE_UNHEALTHY,
        robot.ResourceStatus.STATE_READY,
    ]

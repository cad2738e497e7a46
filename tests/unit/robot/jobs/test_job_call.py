"""The call of a job: its method, its resource and the errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.robot.bench import Bench, Thing, fail_with, job, probe, thing, wait_forever
from tests.unit.robot.module_api import OWN_API, OWN_RESOURCE, OwnApiModules, make_modules
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.inputcontroller.v1 import input_controller_pb2 as input_controller
from viam.utils import dict_to_struct

from cogwork.config.schema.machine import JobConfig
from cogwork.core.errors import CogworkError, InvalidName, InvalidRequest, NotFound, Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.jobs.job_call import make_job_call, resolve_name
from cogwork.robot.jobs.job_scheduler import JobScheduler
from cogwork.robot.middleware.operations import current_operation
from cogwork.wire.table.descriptor_service import methods_from_descriptor
from cogwork.wire.table.handlers import HandlerTable, Stream


def make_call(bench: Bench) -> Callable[[JobConfig], Awaitable[None]]:
    return make_job_call(bench.table, lambda text: resolve_name(text, bench.machine.nodes))


class TestMethods:
    async def test_method_is_called_by_its_name(self, bench: Bench) -> None:
        await bench.apply(probe("a"))
        seen: list[Any] = []

        async def read(**options: Any) -> dict[str, int]:
            operation = current_operation()
            assert operation is not None
            seen.append((operation.method.path, operation.stream.peer, options["timeout"] > 590))
            return {"x": 1}

        bench.behaviors["a"] = read
        await make_call(bench)(job())
        await make_call(bench)(job(resource="rdk:component:sensor/a"))
        path = "/viam.component.sensor.v1.SensorService/GetReadings"
        assert seen == [(path, "job:j", True)] * 2

    async def test_do_command_passes_the_command(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        commands: list[Any] = []

        async def do(command: Any) -> dict[str, Any]:
            commands.append(command)
            return {}

        bench.behaviors["a"] = do
        command = {"go": {"far": [1, True, None, "x"]}}
        await make_call(bench)(job(method="DoCommand", command=command))
        await make_call(bench)(job(method="DoCommand"))
        assert commands == [command, {}]

    async def test_get_status_is_called(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        status_names: list[str] = []

        async def get_status(self: Thing, **_: Any) -> dict[str, Any]:
            status_names.append(self.name)
            return {}

        monkeypatch.setattr(Thing, "get_status", get_status)
        await bench.apply(thing("a"))
        await make_call(bench)(job(method="GetStatus"))
        assert status_names == ["a"]

    async def test_input_controller_request_has_the_controller_field(self) -> None:
        seen: list[Any] = []

        async def get_controls(request: Any, _: Stream) -> Any:
            seen.append(request)
            return input_controller.GetControlsResponse()

        descriptor = input_controller.DESCRIPTOR.services_by_name["InputControllerService"]
        refusals = dict.fromkeys(descriptor.methods_by_name, "no")
        table = HandlerTable()
        table.add(
            descriptor.full_name,
            lambda: methods_from_descriptor(descriptor, {"GetControls": get_controls}, refusals),
        )
        pad = ResourceName(Api.parse("rdk:component:input_controller"), "pad", "line2")
        await make_job_call(table, lambda _: pad)(job(method="GetControls"))
        assert seen == [input_controller.GetControlsRequest(controller="line2:pad")]

    async def test_unavailable_resource_raises_with_the_reason(self, bench: Bench) -> None:
        bench.scripts["build", "a"] = fail_with("no such port")
        await bench.apply(thing("a"))
        with pytest.raises(CogworkError, match="not available; reason=no such port"):
            await make_call(bench)(job(method="DoCommand"))

    async def test_unknown_method_raises_with_the_known_ones(self, bench: Bench) -> None:
        await bench.apply(probe("a"))
        with pytest.raises(Unsupported) as refused:
            await make_call(bench)(job(method="getReadings"))
        assert str(refused.value) == (
            'viam.component.sensor.v1.SensorService has no method "getReadings"; a job can call '
            "GetReadings, DoCommand, GetStatus, GetGeometries"
        )

    async def test_streaming_method_is_refused(self, bench: Bench) -> None:
        board = ResourceName(Api.parse("rdk:component:board"), "a")
        call = make_job_call(bench.table, lambda _: board)
        with pytest.raises(Unsupported, match=r'BoardService serves "StreamTicks" as a stream; a'):
            await call(job(method="StreamTicks"))

    @pytest.mark.parametrize("api", ["rdk:component:sensor", "acme:component:own"])
    async def test_unserved_api_raises(self, api: str) -> None:
        call = make_job_call(HandlerTable(), lambda _: ResourceName(Api.parse(api), "a"))
        with pytest.raises(Unsupported, match=f"{api} is not served by this machine"):
            await call(job())

    async def test_job_run_is_an_operation_that_can_be_cancelled(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        jobs = JobScheduler(bench.clock, make_call(bench))
        jobs.apply([job(method="DoCommand")])
        await bench.clock.advance(10)
        (operation,) = bench.machine.operations.others()
        operation.end(CogworkError("cancelled by hand"))
        await bench.clock.settle()
        (record,) = jobs.statuses()
        assert [each.reason for each in record.failures] == ["cancelled by hand"]
        await jobs.aclose()


class TestModuleApis:
    async def test_method_is_called_as_the_module_describes_it(self) -> None:
        calls: list[tuple[str, Any]] = []

        async def record_call(path: str, stream: Stream) -> None:
            calls.append((path, await stream.recv_message()))
            await stream.send_message(b"")

        call = make_job_call(
            HandlerTable(fallback=record_call), lambda _: OWN_RESOURCE, make_modules(OWN_API)
        )
        await call(job(method="Greet"))
        await call(job(method="DoCommand", command={"go": "far"}))
        (greet, greeted), (do, done) = calls
        assert (greet, greeted) == ("/acme.own.v1.OwnService/Greet", b"\x0a\x04hers")
        command = common.DoCommandRequest(name="hers", command=dict_to_struct({"go": "far"}))
        assert (do, done) == ("/acme.own.v1.OwnService/DoCommand", command.SerializeToString())

    async def test_streaming_method_is_refused(self) -> None:
        call = make_job_call(HandlerTable(), lambda _: OWN_RESOURCE, make_modules(OWN_API))
        with pytest.raises(Unsupported, match=r"as a stream; a job can call Greet, DoCommand$"):
            await call(job(method="Flow"))

    async def test_api_without_descriptor_raises(self) -> None:
        call = make_job_call(HandlerTable(), lambda _: OWN_RESOURCE, OwnApiModules)
        with pytest.raises(Unsupported, match="OwnService does not describe its methods"):
            await call(job(method="Greet"))


class TestResolveName:
    NAMES = (
        ResourceName(Api.parse("rdk:component:camera"), "front"),
        ResourceName(Api.parse("rdk:component:sensor"), "front"),
        ResourceName(Api.parse("rdk:component:arm"), "arm"),
        ResourceName(Api.parse("rdk:component:arm"), "arm", "line2"),
    )

    def test_short_and_full_names_are_resolved(self) -> None:
        assert resolve_name("arm", self.NAMES) is self.NAMES[2]
        assert resolve_name("line2:arm", self.NAMES) is self.NAMES[3]
        assert resolve_name("rdk:component:sensor/front", self.NAMES) == self.NAMES[1]
        assert resolve_name("arm", self.NAMES[3:]) is self.NAMES[3]

    def test_unknown_name_raises_with_a_hint(self) -> None:
        with pytest.raises(NotFound, match='there is no resource "amr"; did you mean "arm"'):
            resolve_name("amr", self.NAMES)
        with pytest.raises(NotFound, match='there is no resource "x"; add it to the configuration'):
            resolve_name("x", ())

    def test_ambiguous_name_raises_with_the_full_names(self) -> None:
        with pytest.raises(InvalidRequest) as refused:
            resolve_name("front", self.NAMES)
        assert str(refused.value) == (
            'several resources are named "front"; use "rdk:component:camera/front" or '
            '"rdk:component:sensor/front"'
        )

    def test_invalid_name_raises(self) -> None:
        with pytest.raises(InvalidName):
            resolve_name("sensor/front", self.NAMES)

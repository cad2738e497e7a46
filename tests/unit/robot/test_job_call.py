"""What a job calls: which method of which resource, and what it is told where that cannot be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.robot.bench import Bench, Thing, failing, for_ever, job, probe, thing
from tests.unit.robot.module_api import HERS, OWN_API, Brought, described
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.inputcontroller.v1 import input_controller_pb2 as input_controller
from viam.utils import dict_to_struct

from cogwork.config.schema import JobConfig
from cogwork.core.errors import CogworkError, InvalidName, InvalidRequest, NotFound, Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.job_call import make_job_call, resolve_name
from cogwork.robot.job_scheduler import JobScheduler
from cogwork.robot.operations import current_operation
from cogwork.wire.descriptor_service import methods_from_descriptor
from cogwork.wire.handlers import HandlerTable, Stream


def call_on(bench: Bench) -> Callable[[JobConfig], Awaitable[None]]:
    return make_job_call(bench.table, lambda text: resolve_name(text, bench.machine.nodes))


class TestMethods:
    async def test_a_method_by_its_name(self, bench: Bench) -> None:
        await bench.apply(probe("a"))
        seen: list[Any] = []

        async def read(**options: Any) -> dict[str, int]:
            operation = current_operation()
            assert operation is not None
            seen.append((operation.method.path, operation.stream.peer, options["timeout"] > 590))
            return {"x": 1}

        bench.deeds["a"] = read
        await call_on(bench)(job())
        await call_on(bench)(job(resource="rdk:component:sensor/a"))
        path = "/viam.component.sensor.v1.SensorService/GetReadings"
        assert seen == [(path, "job:j", True)] * 2

    async def test_a_command(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        commands: list[Any] = []

        async def do(command: Any) -> dict[str, Any]:
            commands.append(command)
            return {}

        bench.deeds["a"] = do
        command = {"go": {"far": [1, True, None, "x"]}}
        await call_on(bench)(job(method="DoCommand", command=command))
        await call_on(bench)(job(method="DoCommand"))
        assert commands == [command, {}]

    async def test_the_status_of_a_resource(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        async def get_status(self: Thing, **_: Any) -> dict[str, Any]:
            asked.append(self.name)
            return {}

        monkeypatch.setattr(Thing, "get_status", get_status)
        await bench.apply(thing("a"))
        await call_on(bench)(job(method="GetStatus"))
        assert asked == ["a"]

    async def test_the_field_of_an_input_controller(self) -> None:
        seen: list[Any] = []

        async def controls(request: Any, _: Stream) -> Any:
            seen.append(request)
            return input_controller.GetControlsResponse()

        descriptor = input_controller.DESCRIPTOR.services_by_name["InputControllerService"]
        refusals = dict.fromkeys(descriptor.methods_by_name, "no")
        table = HandlerTable()
        table.add(
            descriptor.full_name,
            lambda: methods_from_descriptor(descriptor, {"GetControls": controls}, refusals),
        )
        pad = ResourceName(Api.parse("rdk:component:input_controller"), "pad", "line2")
        await make_job_call(table, lambda _: pad)(job(method="GetControls"))
        assert seen == [input_controller.GetControlsRequest(controller="line2:pad")]

    async def test_a_resource_that_is_not_ready_says_why(self, bench: Bench) -> None:
        bench.scripts["build", "a"] = failing("no such port")
        await bench.apply(thing("a"))
        with pytest.raises(CogworkError, match="not available; reason=no such port"):
            await call_on(bench)(job(method="DoCommand"))

    async def test_an_unknown_method_lists_those_there_are(self, bench: Bench) -> None:
        await bench.apply(probe("a"))
        with pytest.raises(Unsupported) as refused:
            await call_on(bench)(job(method="getReadings"))
        assert str(refused.value) == (
            'viam.component.sensor.v1.SensorService has no method "getReadings"; a job can call '
            "GetReadings, DoCommand, GetStatus, GetGeometries"
        )

    async def test_a_stream_is_refused(self, bench: Bench) -> None:
        board = ResourceName(Api.parse("rdk:component:board"), "a")
        call = make_job_call(bench.table, lambda _: board)
        with pytest.raises(Unsupported, match=r'BoardService streams "StreamTicks"; a job can'):
            await call(job(method="StreamTicks"))

    @pytest.mark.parametrize("api", ["rdk:component:sensor", "acme:component:own"])
    async def test_an_api_that_is_not_served(self, api: str) -> None:
        call = make_job_call(HandlerTable(), lambda _: ResourceName(Api.parse(api), "a"))
        with pytest.raises(Unsupported, match=f"{api} is not served by this machine"):
            await call(job())

    async def test_a_run_on_a_machine_is_an_operation_that_can_be_cancelled(
        self, bench: Bench
    ) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        jobs = JobScheduler(bench.clock, call_on(bench))
        jobs.apply([job(method="DoCommand")])
        await bench.clock.advance(10)
        (operation,) = bench.machine.operations.others()
        operation.end(CogworkError("cancelled by hand"))
        await bench.clock.settle()
        (record,) = jobs.statuses()
        assert [each.reason for each in record.failures] == ["cancelled by hand"]
        await jobs.aclose()


class TestWhatModulesBring:
    async def test_is_called_as_the_module_describes_it(self) -> None:
        said: list[tuple[str, Any]] = []

        async def carry(path: str, stream: Stream) -> None:
            said.append((path, await stream.recv_message()))
            await stream.send_message(b"")

        call = make_job_call(HandlerTable(fallback=carry), lambda _: HERS, described(OWN_API))
        await call(job(method="Greet"))
        await call(job(method="DoCommand", command={"go": "far"}))
        (greet, greeted), (do, done) = said
        assert (greet, greeted) == ("/acme.own.v1.OwnService/Greet", b"\x0a\x04hers")
        command = common.DoCommandRequest(name="hers", command=dict_to_struct({"go": "far"}))
        assert (do, done) == ("/acme.own.v1.OwnService/DoCommand", command.SerializeToString())

    async def test_a_stream_is_refused(self) -> None:
        call = make_job_call(HandlerTable(), lambda _: HERS, described(OWN_API))
        with pytest.raises(Unsupported, match=r'streams "Flow"; a job can call Greet, DoCommand$'):
            await call(job(method="Flow"))

    async def test_without_a_description_nobody_can_call_it(self) -> None:
        call = make_job_call(HandlerTable(), lambda _: HERS, Brought)
        with pytest.raises(Unsupported, match="OwnService is not described by the module"):
            await call(job(method="Greet"))


class TestNames:
    NAMES = (
        ResourceName(Api.parse("rdk:component:camera"), "front"),
        ResourceName(Api.parse("rdk:component:sensor"), "front"),
        ResourceName(Api.parse("rdk:component:arm"), "arm"),
        ResourceName(Api.parse("rdk:component:arm"), "arm", "line2"),
    )

    def test_by_what_people_say(self) -> None:
        assert resolve_name("arm", self.NAMES) is self.NAMES[2]
        assert resolve_name("line2:arm", self.NAMES) is self.NAMES[3]
        assert resolve_name("rdk:component:sensor/front", self.NAMES) == self.NAMES[1]

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(NotFound, match='there is no resource "amr"; did you mean "arm"'):
            resolve_name("amr", self.NAMES)
        with pytest.raises(NotFound, match='there is no resource "x"; add it to the configuration'):
            resolve_name("x", ())

    def test_one_that_could_be_several(self) -> None:
        with pytest.raises(InvalidRequest) as refused:
            resolve_name("front", self.NAMES)
        assert str(refused.value) == (
            'several resources are named "front"; use "rdk:component:camera/front" or '
            '"rdk:component:sensor/front"'
        )

    def test_one_that_is_no_name(self) -> None:
        with pytest.raises(InvalidName):
            resolve_name("sensor/front", self.NAMES)

"""A running machine: calls of resources, states, stopping and closing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.support.waiting import run_others, wait_until
from tests.unit.robot.bench import (
    BUTTON,
    GENERIC,
    MOTION,
    MOTOR,
    READ,
    SENSOR,
    VIDEO,
    Bench,
    fail_with,
    full_name,
    probe,
    thing,
    wait_forever,
)
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.button.v1 import button_pb2 as button
from viam.gen.component.motor.v1 import motor_pb2 as motor
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.gen.service.motion.v1 import motion_pb2 as motion
from viam.utils import dict_to_struct

from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.reconciler import Applied, Superseded
from cogwork.graph.spec import Spec
from cogwork.robot.hosts import NoModules
from cogwork.robot.middleware.change_wait import CHANGE_TIMEOUT

GO_FOR = "/viam.component.motor.v1.MotorService/GoFor"
PUSH = "/viam.component.button.v1.ButtonService/Push"
MOVE = "/viam.service.motion.v1.MotionService/Move"
STOP_MESSAGE = "cancelled, because everything was told to stop"
MAX_CONCURRENT_CALLS = 50
"""Concurrent calls of one resource for a single client."""
GET_VIDEO = "/viam.service.video.v1.VideoService/GetVideo"


class TestCalls:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("belr", 'did you mean "belt"?'),
            ("gauge", "rdk:component:sensor/gauge has that name"),
            ("zzzzzz", "resources of this API: belt, door"),
            ("far:belt", 'did you mean "belt"?'),
            ("", "resources of this API: belt, door"),
        ],
    )
    async def test_unknown_name_is_not_found_with_a_hint(
        self, bench: Bench, name: str, hint: str
    ) -> None:
        await bench.apply(thing("belt"), thing("door"), probe("gauge"))
        with refused() as error:
            await bench.do_command(name)
        assert error.status is Status.NOT_FOUND
        assert error.words == f"no node found with api {GENERIC} and name {name}; {hint}"

    async def test_hint_lists_a_few_names_and_those_of_this_machine_first(
        self, bench: Bench
    ) -> None:
        await bench.apply(thing("zebra"))
        bench.machine.set_discovered(
            Spec(ResourceName(GENERIC, f"c{number}", "far"), ModelName.parse("remote"))
            for number in range(500)
        )
        await wait_until(lambda: len(bench.machine.nodes) > 500)
        with refused() as error:
            await bench.do_command("???")
        assert "resources of this API: zebra, far:c0, far:c1, " in error.words
        assert error.words.endswith(" and 481 more")

    async def test_api_without_resources_is_not_found(self, bench: Bench) -> None:
        await bench.apply(thing("belt"))
        with refused() as error:
            await bench.call(READ, common.GetReadingsRequest(name="gauge"))
        assert error.status is Status.NOT_FOUND
        assert error.words.endswith("resources of this API: none")

    async def test_unbuilt_resource_is_unavailable_with_the_reason(self, bench: Bench) -> None:
        bench.scripts["build", "belt"] = fail_with("the cable was pulled")
        await bench.apply(thing("belt"), thing("lamp", needs="belt"))
        with refused() as error:
            await bench.do_command("belt")
        assert error.status is Status.UNAVAILABLE
        assert error.words == (
            f"resource {full_name('belt')} not available; reason=the cable was pulled"
        )
        with refused() as error:
            await bench.do_command("lamp")
        assert error.words == (
            f"resource {full_name('lamp')} not available; "
            'reason=depends on "belt", which is not ready: the cable was pulled'
        )

    async def test_resource_with_a_config_fault_is_unavailable(self, bench: Bench) -> None:
        await bench.apply({**thing("belt"), "attributes": {"label": 5}}, thing("lamp"))
        with refused() as error:
            await bench.do_command("belt")
        assert error.status is Status.UNAVAILABLE
        assert "not available; reason=" in error.words
        assert "/components/0/attributes/label" in error.words
        assert await bench.do_command("lamp") == {}

    async def test_resource_under_construction_is_unavailable(self, bench: Bench) -> None:
        bench.scripts["build", "belt"] = lambda: bench.clock.sleep(20)
        bench.start_apply({"components": [thing("belt")]})
        assert str(bench.machine.unavailable_error(full_name("belt"))).endswith(
            "reason=it is not built yet"
        )
        task = await bench.start_call(bench.do_command("belt"))
        await bench.clock.advance(CHANGE_TIMEOUT)
        with refused() as error:
            await task
        assert error.status is Status.UNAVAILABLE
        assert error.words.endswith("reason=it is being built")
        await bench.clock.advance(20)
        assert await bench.do_command("belt") == {}

    async def test_resource_being_removed_is_unavailable(self, bench: Bench) -> None:
        await bench.apply(thing("belt"))
        bench.scripts["close", "belt"] = lambda: bench.clock.sleep(5)
        bench.start_apply({"components": []})
        await bench.clock.advance(1)
        with refused() as error:
            await bench.do_command("belt")
        assert error.status is Status.UNAVAILABLE
        assert error.words.endswith("reason=it is being removed")
        await bench.clock.advance(5)
        with refused() as error:
            await bench.do_command("belt")
        assert error.status is Status.NOT_FOUND

    async def test_undecodable_driver_error_is_escaped(self, bench: Bench) -> None:
        """An error may contain a file name that is not UTF-8."""
        bench.scripts["build", "belt"] = fail_with("no file '/data/\udcff'")
        await bench.apply(thing("belt"), thing("lamp"))
        with refused() as error:
            await bench.do_command("belt")
        assert error.words.endswith(r"reason=no file '/data/\udcff'")
        status = await bench.call_robot("GetMachineStatus")
        assert [each.name.name for each in status.resources] == ["belt", "lamp"]

    async def test_resource_of_an_unserved_api_is_unimplemented(self, bench: Bench) -> None:
        bench.scripts["build", "eye"] = fail_with("no such device")
        await bench.apply(services=[{**thing("eye"), "api": str(VIDEO)}])
        request = common.GetReadingsRequest(name="eye").SerializeToString()
        with refused() as error:
            await bench.call(GET_VIDEO, request)
        assert error.status is Status.UNAVAILABLE
        assert error.words.endswith("reason=no such device")
        bench.scripts.clear()
        await bench.clock.advance(30)
        with refused() as error:
            await bench.call(GET_VIDEO, request)
        assert error.status is Status.UNIMPLEMENTED
        assert error.words == f"{GET_VIDEO} is not served: {VIDEO} is not part of this release yet"
        for name in ("nose", "far:nose"):
            with refused() as error:
                await bench.call(
                    GET_VIDEO, common.GetReadingsRequest(name=name).SerializeToString()
                )
            assert error.status is Status.NOT_FOUND
            assert error.words.endswith("resources of this API: eye")

    async def test_machine_without_configuration_has_no_resources(self, bench: Bench) -> None:
        with refused() as error:
            await bench.do_command("belt")
        assert error.status is Status.NOT_FOUND
        assert list((await bench.call_robot("ResourceNames")).resources) == []


class TestMachineState:
    async def test_state_is_initializing_until_all_resources_settle(self, bench: Bench) -> None:
        bench.scripts["build", "slow"] = lambda: bench.clock.sleep(5)
        bench.scripts["build", "broken"] = fail_with("no")
        bench.start_apply({"components": [thing("slow"), thing("broken")], "revision": "1"})
        await bench.clock.advance(1)
        status = await bench.call_robot("GetMachineStatus")
        assert status.state == robot.GetMachineStatusResponse.STATE_INITIALIZING
        assert status.config.revision == ""
        assert not status.config.HasField("last_updated")
        assert [(each.name.name, each.state, each.error) for each in status.resources] == [
            ("slow", robot.ResourceStatus.STATE_CONFIGURING, ""),
            ("broken", robot.ResourceStatus.STATE_UNHEALTHY, "no"),
        ]
        await bench.clock.advance(4)
        status = await bench.call_robot("GetMachineStatus")
        assert status.state == robot.GetMachineStatusResponse.STATE_RUNNING
        assert status.config.revision == "1"
        assert status.config.last_updated.seconds == int(bench.clock.time())
        assert [each.revision for each in status.resources] == ["1", ""]

    async def test_state_stays_running_during_a_change(self, bench: Bench) -> None:
        await bench.apply(thing("a"), revision="1")
        bench.scripts["build", "b"] = lambda: bench.clock.sleep(5)
        bench.start_apply({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.advance(1)
        assert bench.machine.state.name == "RUNNING"
        assert bench.machine.revision == "1"
        await bench.clock.advance(5)
        assert bench.machine.revision == "2"

    async def test_superseded_revision_is_never_visible(self, bench: Bench) -> None:
        await bench.apply(thing("a"), revision="1")
        applied = bench.machine.applied_at
        bench.scripts["build", "b"] = wait_forever
        hanging = bench.start_apply({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.advance(10)
        assert (bench.machine.revision, bench.machine.applied_at) == ("1", applied)
        bench.scripts.clear()
        seen = set[str]()
        last = bench.start_apply({"components": [thing("a"), thing("c")], "revision": "3"})
        for _ in range(100):
            seen.add(bench.machine.revision)
            await run_others()
        await bench.clock.settle()
        assert hanging.result() == Superseded("2")
        assert isinstance(last.result(), Applied)
        assert seen == {"1", "3"}
        assert bench.machine.applied_at == bench.clock.time()

    async def test_superseded_first_configuration_keeps_initializing(self, bench: Bench) -> None:
        bench.scripts["build", "a"] = lambda: bench.clock.sleep(5)
        bench.start_apply({"components": [thing("a")], "revision": "1"})
        await bench.clock.advance(1)
        bench.start_apply({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.settle()
        assert bench.machine.state.name == "INITIALIZING"
        assert bench.machine.revision == ""
        await bench.clock.advance(5)
        assert bench.machine.state.name == "RUNNING"
        assert bench.machine.revision == "2"

    async def test_revision_defaults_to_a_hash_of_the_text(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        first = bench.machine.revision
        await bench.apply(thing("a"), thing("b"))
        second = bench.machine.revision
        await bench.apply(thing("a"))
        assert len(first) == 12
        assert first != second
        assert bench.machine.revision == first

    async def test_resource_names_include_unhealthy_ones(self, bench: Bench) -> None:
        bench.scripts["build", "b"] = fail_with("no")
        await bench.apply(thing("z"), thing("b"), probe("p"), thing("a"))
        names = (await bench.call_robot("ResourceNames")).resources
        assert [(each.subtype, each.name) for each in names] == [
            ("generic", "z"),
            ("generic", "b"),
            ("sensor", "p"),
            ("generic", "a"),
        ]
        kinds = (await bench.call_robot("ResourceRPCSubtypes")).resource_rpc_subtypes
        assert [each.proto_service for each in kinds] == [
            "viam.component.generic.v1.GenericService",
            "viam.component.sensor.v1.SensorService",
        ]

    async def test_module_cannot_replace_the_service_of_a_public_api(self, bench: Bench) -> None:
        class Hijacker(NoModules):
            def services(self) -> dict[Api, str]:
                return {GENERIC: "evil.v1.Stolen"}

        bench.machine.modules = Hijacker()
        await bench.apply(thing("a"))
        (kind,) = (await bench.call_robot("ResourceRPCSubtypes")).resource_rpc_subtypes
        assert kind.proto_service == "viam.component.generic.v1.GenericService"


class TestStopAll:
    async def test_stop_all_passes_extra_parameters(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mover"), thing("arm", "mover"), thing("lamp"))
        bench.history.clear()
        await bench.call_robot("StopAll", stop_all(arm={"gently": True}))
        assert bench.history == [("stop", "wheel", {}), ("stop", "arm", {"gently": True})]

    async def test_stop_all_ends_only_calls_of_moving_resources(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mover"), thing("lamp"), probe("gauge"))
        bench.behaviors = {"wheel": wait_forever, "lamp": wait_forever, "gauge": wait_forever}
        moving = [await bench.start_call(bench.do_command("wheel")) for _ in range(2)]
        reading = bench.call(READ, common.GetReadingsRequest(name="gauge"))
        others = [await bench.start_call(bench.do_command("lamp")), await bench.start_call(reading)]
        await bench.call_robot("StopAll")
        for task in moving:
            with refused() as error:
                await task
            assert error.status is Status.CANCELLED
            assert error.words == "cancelled, because everything was told to stop"
        assert not any(task.done() for task in others)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def test_stop_all_ends_a_button_push(self, bench: Bench) -> None:
        await bench.apply({"name": "bell", "api": str(BUTTON), "model": "bell"})
        bench.behaviors["bell"] = wait_forever
        push = await bench.start_call(bench.call(PUSH, button.PushRequest(name="bell")))
        await bench.call_robot("StopAll")
        await bench.clock.settle()
        assert push.done(), "it is pushed for ever"
        with refused() as error:
            await push
        assert (error.status, error.words) == (Status.CANCELLED, STOP_MESSAGE)

    async def test_stop_all_ends_queued_moving_calls(self, bench: Bench) -> None:
        await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"}, thing("lamp"))
        request = motor.GoForRequest(name="wheel", rpm=1, revolutions=1)
        moves = [
            await bench.start_call(bench.call(GO_FOR, request))
            for _ in range(MAX_CONCURRENT_CALLS + 3)
        ]
        bench.behaviors["lamp"] = wait_forever
        others = [
            await bench.start_call(bench.do_command("lamp"))
            for _ in range(MAX_CONCURRENT_CALLS + 1)
        ]
        await bench.call_robot("StopAll")
        await bench.clock.settle()
        assert all(move.done() for move in moves), "some waited, and move now"
        for move in moves:
            with refused() as error:
                await move
            assert (error.status, error.words) == (Status.CANCELLED, STOP_MESSAGE)
        assert not any(other.done() for other in others)
        await cancel_calls(others)

    async def test_stop_all_keeps_reading_calls(self, bench: Bench) -> None:
        gate = asyncio.Event()
        bench.scripts["look", "wheel"] = gate.wait
        await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"})
        look = "/viam.component.motor.v1.MotorService/IsMoving"
        request = motor.IsMovingRequest(name="wheel")
        looks = [
            await bench.start_call(bench.call(look, request))
            for _ in range(MAX_CONCURRENT_CALLS + 1)
        ]
        await bench.call_robot("StopAll")
        gate.set()
        assert not any(reply.is_moving for reply in await asyncio.gather(*looks))

    async def test_stop_all_ends_planned_and_queued_moves(self, bench: Bench) -> None:
        planner = {"name": "planner", "api": str(MOTION), "model": "planner"}
        await bench.apply(services=[planner])
        bench.behaviors["planner"] = wait_forever
        request = motion.MoveRequest(name="planner")
        moves = [
            await bench.start_call(bench.call(MOVE, request))
            for _ in range(MAX_CONCURRENT_CALLS + 1)
        ]
        await bench.call_robot("StopAll")
        await bench.clock.settle()
        assert all(move.done() for move in moves), "some are still to come"
        for move in moves:
            with refused() as error:
                await move
            assert error.words == STOP_MESSAGE

    async def test_stop_all_reports_all_errors_and_stops_the_rest(self, bench: Bench) -> None:
        await bench.apply(*(thing(name, "mover") for name in ("a", "b", "c")))
        bench.scripts["stop", "a"] = fail_with("the brake is worn")
        bench.scripts["stop", "c"] = fail_with("no power")
        with refused() as error:
            await bench.call_robot("StopAll")
        assert error.words == (
            "failed to stop component named a with error the brake is worn; "
            "failed to stop component named c with error no power"
        )
        assert {name for what, name, *_ in bench.history if what == "stop"} == {"a", "b", "c"}

    async def test_stop_all_continues_after_broken_stop_methods(self, bench: Bench) -> None:
        await bench.apply(*(thing(name, "mover") for name in ("a", "b", "c", "d")))
        resources: dict[str, Any] = {
            name.short: node.live.resource
            for name, node in bench.machine.nodes.items()
            if node.live is not None
        }

        def stop_without_extra() -> None: ...

        def stop_synchronously(*, extra: object = None) -> str:
            return "not awaitable"

        async def stop_with_exit(*, extra: object = None) -> None:
            raise SystemExit(3)

        resources["a"].stop = stop_without_extra
        resources["b"].stop = stop_synchronously
        resources["c"].stop = stop_with_exit
        with refused() as error:
            await bench.call_robot("StopAll")
        failures = error.words.split("; ")
        assert [each.split(" with error ")[0] for each in failures] == [
            f"failed to stop component named {name}" for name in ("a", "b", "c")
        ]
        assert ("stop", "d", {}) in bench.history

    async def test_stop_all_stops_resources_under_reconfiguration(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mutable_mover"))
        bench.scripts["reconfigure", "wheel"] = lambda: bench.clock.sleep(5)
        bench.start_apply({"components": [thing("wheel", "mutable_mover", label="new")]})
        await bench.clock.advance(1)
        await bench.call_robot("StopAll")
        assert bench.history[-1] == ("stop", "wheel", {})
        await bench.clock.advance(5)

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    async def test_stop_all_tolerates_odd_parameters(self, bench: Bench, number: float) -> None:
        await bench.apply(thing("wheel", "mover"))
        request = stop_all(wheel={"speed": number}, nobody={})
        request.extra.add(name=common.ResourceName(name="::"))
        await bench.call_robot("StopAll", request)
        ((_, _, given),) = [each for each in bench.history if each[0] == "stop"]
        assert str(given) == str({"speed": number})


async def cancel_calls(calls: list[asyncio.Task[Any]]) -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


def stop_all(**extra: Mapping[str, Any]) -> robot.StopAllRequest:
    request = robot.StopAllRequest()
    for name, parameters in extra.items():
        request.extra.add(
            name=common.ResourceName(
                namespace="rdk", type="component", subtype="generic", name=name
            ),
            params=dict_to_struct(parameters),
        )
    return request


class TestClosing:
    async def test_close_closes_dependents_first(self, bench: Bench) -> None:
        await bench.apply(thing("c", needs="b"), thing("a"), thing("b", needs="a"))
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        assert closing.result() == []
        assert bench.history[3:] == [("close", "c"), ("close", "b"), ("close", "a")]

    async def test_close_stops_movement_first(self, bench: Bench) -> None:
        await bench.apply(thing("base", needs="wheel"), thing("wheel", "mover"))
        bench.scripts["close", "base"] = lambda: bench.clock.sleep(20)
        bench.history.clear()
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.settle()
        assert bench.history == [("stop", "wheel", {}), ("close", "base")]
        await bench.clock.advance(20)
        assert closing.result() == []
        assert bench.history[2:] == [("stop", "wheel", {}), ("close", "wheel")]

    async def test_close_ends_moving_calls_at_once(self, bench: Bench) -> None:
        await bench.apply(thing("base", needs="wheel"), thing("wheel", "mover"))
        bench.scripts["close", "base"] = lambda: bench.clock.sleep(20)
        bench.behaviors["wheel"] = wait_forever
        call = await bench.start_call(bench.do_command("wheel"))
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.settle()
        assert call.done(), "it goes on until the base is closed"
        with refused() as error:
            await call
        assert error.words == "cancelled, because the machine is shutting down"
        await bench.clock.advance(20)
        assert closing.result() == []

    async def test_close_stops_movement_despite_an_endless_job(self, bench: Bench) -> None:
        async def ignore_cancellation(command: Mapping[str, Any]) -> None:
            while not released.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await released.wait()

        released = asyncio.Event()
        job = {
            "name": "j",
            "schedule": "1s",
            "resource": "lamp",
            "method": "DoCommand",
            "command": {},
        }
        await bench.apply(thing("wheel", "mover"), thing("lamp"), jobs=[job])
        bench.behaviors["lamp"] = ignore_cancellation
        await bench.clock.advance(1)
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        meanwhile = list(bench.history)
        assert not closing.done()
        released.set()
        await bench.clock.advance(1)
        assert closing.result() == []
        assert ("stop", "wheel", {}) in meanwhile

    async def test_close_logs_failed_stops_and_continues(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bench.apply(thing("wheel", "mover"), thing("arm", "mover"))
        bench.scripts["stop", "wheel"] = fail_with("the brake is worn")
        bench.history.clear()
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        assert closing.result() == []
        assert ("stop", "arm", {}) in bench.history
        assert (
            "closing the machine although something may still move: "
            "failed to stop component named wheel with error the brake is worn"
        ) in caplog.messages

    async def test_close_waits_only_briefly_for_a_slow_stop(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench = Bench()
        await bench.apply(thing("wheel", "mover"), thing("lamp"))
        bench.scripts["stop", "wheel"] = wait_forever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.advance(1.9)
        assert ("close", "lamp") not in bench.history
        await bench.clock.advance(0.2)
        assert ("close", "lamp") in bench.history
        assert "some resources still move after 2s; closing them anyway" in caplog.messages
        await bench.clock.advance(30)
        assert closing.result() == []
        assert "named wheel with error stopping took longer than 10s" in caplog.text

    async def test_hanging_close_does_not_block_other_closes(self) -> None:
        bench = Bench()
        await bench.apply(thing("b", needs="a"), thing("a"), thing("other"))
        bench.scripts["close", "b"] = wait_forever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.advance(29)
        assert ("close", "other") in bench.history
        assert not closing.done()
        await bench.clock.advance(2)
        assert closing.done()
        assert bench.history[-1] == ("close", "a")

    async def test_close_respects_its_budget(self) -> None:
        bench = Bench()
        await bench.apply(thing("b", needs="a"), thing("a"))
        bench.scripts["close", "b"] = wait_forever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=5))
        await bench.clock.advance(7)
        assert closing.result() == [full_name("a"), full_name("b")]

    async def test_apply_after_close_raises(self, bench: Bench) -> None:
        await bench.machine.aclose()
        with pytest.raises(RuntimeError, match="is being closed"):
            bench.start_apply({"components": [thing("a")]})


async def test_resources_with_the_same_short_name_are_distinguished_by_api(bench: Bench) -> None:
    """Two resources may have the same short name."""
    await bench.apply(thing("same"), probe("same"))

    async def read(**_: Any) -> dict[str, Any]:
        return {"celsius": 21.5}

    bench.behaviors["same"] = read
    reading = await bench.call(READ, common.GetReadingsRequest(name="same"))
    assert reading.readings["celsius"].number_value == 21.5
    bench.behaviors.clear()
    assert await bench.do_command("same", {"x": 1}) == {"x": 1}
    assert [name.api for name in bench.machine.nodes] == [GENERIC, SENSOR]

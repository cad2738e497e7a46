"""One running machine: who may be called, in which state it is, what stops when it must."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from grpclib.const import Status
from tests.served import refused
from tests.unit.robot.bench import (
    BUTTON,
    FILMER,
    GENERIC,
    MOTION,
    MOTOR,
    READ,
    SENSOR,
    Bench,
    failing,
    for_ever,
    full,
    probe,
    thing,
)
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.button.v1 import button_pb2 as button
from viam.gen.component.motor.v1 import motor_pb2 as motor
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.gen.service.motion.v1 import motion_pb2 as motion
from viam.utils import dict_to_struct

from cogwork.graph.name import Api
from cogwork.graph.reconciler import Applied, Superseded
from cogwork.robot.module_host import NoModules

GO_FOR = "/viam.component.motor.v1.MotorService/GoFor"
PUSH = "/viam.component.button.v1.ButtonService/Push"
MOVE = "/viam.service.motion.v1.MotionService/Move"
STOPPED = "cancelled, because everything was told to stop"
PLACES = 50
"""Calls of one resource that run at once for a client that is alone."""
FILM = "/viam.service.video.v1.VideoService/GetVideo"


class TestWhoMayBeCalled:
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
    async def test_a_name_that_nobody_has(self, bench: Bench, name: str, hint: str) -> None:
        await bench.apply(thing("belt"), thing("door"), probe("gauge"))
        with refused() as told:
            await bench.do(name)
        assert told.status is Status.NOT_FOUND
        assert told.words == f"no node found with api {GENERIC} and name {name}; {hint}"

    async def test_of_an_api_there_is_none(self, bench: Bench) -> None:
        await bench.apply(thing("belt"))
        with refused() as told:
            await bench.call(READ, common.GetReadingsRequest(name="gauge"))
        assert told.status is Status.NOT_FOUND
        assert told.words.endswith("resources of this API: none")

    async def test_one_that_could_not_be_built(self, bench: Bench) -> None:
        bench.scripts["build", "belt"] = failing("the cable was pulled")
        await bench.apply(thing("belt"), thing("lamp", needs="belt"))
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.UNAVAILABLE
        assert told.words == (f"resource {full('belt')} not available; reason=the cable was pulled")
        with refused() as told:
            await bench.do("lamp")
        assert told.words == (
            f"resource {full('lamp')} not available; "
            'reason=depends on "belt", which is not ready: the cable was pulled'
        )

    async def test_one_with_a_fault_in_the_file(self, bench: Bench) -> None:
        await bench.apply({**thing("belt"), "attributes": {"label": 5}}, thing("lamp"))
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.UNAVAILABLE
        assert "not available; reason=" in told.words
        assert "/components/0/attributes/label" in told.words
        assert await bench.do("lamp") == {}

    async def test_one_that_is_being_built(self, bench: Bench) -> None:
        bench.scripts["build", "belt"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": [thing("belt")]})
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.UNAVAILABLE
        assert told.words.endswith("reason=it is not built yet")
        await bench.clock.advance(1)
        with refused() as told:
            await bench.do("belt")
        assert told.words.endswith("reason=it is being built")
        await bench.clock.advance(5)
        assert await bench.do("belt") == {}

    async def test_one_that_is_being_removed(self, bench: Bench) -> None:
        await bench.apply(thing("belt"))
        bench.scripts["close", "belt"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": []})
        await bench.clock.advance(1)
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.UNAVAILABLE
        assert told.words.endswith("reason=it is being removed")
        await bench.clock.advance(5)
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.NOT_FOUND

    async def test_words_of_a_driver_that_are_no_text_hide_nothing_else(self, bench: Bench) -> None:
        """An error may quote the name of a file that is not UTF-8."""
        bench.scripts["build", "belt"] = failing("no file '/data/\udcff'")
        await bench.apply(thing("belt"), thing("lamp"))
        with refused() as told:
            await bench.do("belt")
        assert told.words.endswith(r"reason=no file '/data/\udcff'")
        status = await bench.ask("GetMachineStatus")
        assert [each.name.name for each in status.resources] == ["belt", "lamp"]

    async def test_of_an_api_that_is_not_served_yet(self, bench: Bench) -> None:
        bench.scripts["build", "eye"] = failing("no such device")
        await bench.apply(services=[{**thing("eye"), "api": str(FILMER)}])
        request = common.GetReadingsRequest(name="eye").SerializeToString()
        with refused() as told:
            await bench.call(FILM, request)
        assert told.status is Status.UNAVAILABLE
        assert told.words.endswith("reason=no such device")
        bench.scripts.clear()
        await bench.clock.advance(30)
        with refused() as told:
            await bench.call(FILM, request)
        assert told.status is Status.UNIMPLEMENTED
        assert told.words == f"{FILM} is not served: {FILMER} is not part of this release yet"
        for name in ("nose", "far:nose"):
            with refused() as told:
                await bench.call(FILM, common.GetReadingsRequest(name=name).SerializeToString())
            assert told.status is Status.NOT_FOUND
            assert told.words.endswith("resources of this API: eye")

    async def test_what_a_machine_without_configuration_says(self, bench: Bench) -> None:
        with refused() as told:
            await bench.do("belt")
        assert told.status is Status.NOT_FOUND
        assert list((await bench.ask("ResourceNames")).resources) == []


class TestState:
    async def test_initializing_until_everything_is_ready_or_unhealthy(self, bench: Bench) -> None:
        bench.scripts["build", "slow"] = lambda: bench.clock.sleep(5)
        bench.scripts["build", "broken"] = failing("no")
        bench.begin({"components": [thing("slow"), thing("broken")], "revision": "1"})
        await bench.clock.advance(1)
        status = await bench.ask("GetMachineStatus")
        assert status.state == robot.GetMachineStatusResponse.STATE_INITIALIZING
        assert status.config.revision == ""
        assert not status.config.HasField("last_updated")
        assert [(each.name.name, each.state, each.error) for each in status.resources] == [
            ("slow", robot.ResourceStatus.STATE_CONFIGURING, ""),
            ("broken", robot.ResourceStatus.STATE_UNHEALTHY, "no"),
        ]
        await bench.clock.advance(4)
        status = await bench.ask("GetMachineStatus")
        assert status.state == robot.GetMachineStatusResponse.STATE_RUNNING
        assert status.config.revision == "1"
        assert status.config.last_updated.seconds == int(bench.clock.time())
        assert [each.revision for each in status.resources] == ["1", ""]

    async def test_running_it_stays(self, bench: Bench) -> None:
        await bench.apply(thing("a"), revision="1")
        bench.scripts["build", "b"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.advance(1)
        assert bench.machine.state.name == "RUNNING"
        assert bench.machine.revision == "1"
        await bench.clock.advance(5)
        assert bench.machine.revision == "2"

    async def test_a_revision_that_was_superseded_is_never_seen(self, bench: Bench) -> None:
        await bench.apply(thing("a"), revision="1")
        applied = bench.machine.applied_at
        bench.scripts["build", "b"] = for_ever
        hanging = bench.begin({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.advance(10)
        assert (bench.machine.revision, bench.machine.applied_at) == ("1", applied)
        bench.scripts.clear()
        seen = set[str]()
        last = bench.begin({"components": [thing("a"), thing("c")], "revision": "3"})
        for _ in range(100):
            seen.add(bench.machine.revision)
            await asyncio.sleep(0)
        await bench.clock.settle()
        assert hanging.result() == Superseded("2")
        assert isinstance(last.result(), Applied)
        assert seen == {"1", "3"}
        assert bench.machine.applied_at == bench.clock.time()

    async def test_a_superseded_first_configuration_leaves_it_initializing(
        self, bench: Bench
    ) -> None:
        bench.scripts["build", "a"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": [thing("a")], "revision": "1"})
        await bench.clock.advance(1)
        bench.begin({"components": [thing("a"), thing("b")], "revision": "2"})
        await bench.clock.settle()
        assert bench.machine.state.name == "INITIALIZING"
        assert bench.machine.revision == ""
        await bench.clock.advance(5)
        assert bench.machine.state.name == "RUNNING"
        assert bench.machine.revision == "2"

    async def test_a_text_without_a_revision_is_known_by_itself(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        first = bench.machine.revision
        await bench.apply(thing("a"), thing("b"))
        second = bench.machine.revision
        await bench.apply(thing("a"))
        assert len(first) == 12
        assert first != second
        assert bench.machine.revision == first

    async def test_the_names_are_those_of_the_file_healthy_or_not(self, bench: Bench) -> None:
        bench.scripts["build", "b"] = failing("no")
        await bench.apply(thing("z"), thing("b"), probe("p"), thing("a"))
        names = (await bench.ask("ResourceNames")).resources
        assert [(each.subtype, each.name) for each in names] == [
            ("generic", "z"),
            ("generic", "b"),
            ("sensor", "p"),
            ("generic", "a"),
        ]
        kinds = (await bench.ask("ResourceRPCSubtypes")).resource_rpc_subtypes
        assert [each.proto_service for each in kinds] == [
            "viam.component.generic.v1.GenericService",
            "viam.component.sensor.v1.SensorService",
        ]

    async def test_a_module_cannot_bring_another_service_for_a_public_api(
        self, bench: Bench
    ) -> None:
        class Hijacker(NoModules):
            def services(self) -> dict[Api, str]:
                return {GENERIC: "evil.v1.Stolen"}

        bench.machine.modules = Hijacker()
        await bench.apply(thing("a"))
        (kind,) = (await bench.ask("ResourceRPCSubtypes")).resource_rpc_subtypes
        assert kind.proto_service == "viam.component.generic.v1.GenericService"


class TestStoppingEverything:
    async def test_what_moves_is_stopped_with_what_each_is_told(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mover"), thing("arm", "mover"), thing("lamp"))
        bench.history.clear()
        await bench.ask("StopAll", stop_all(arm={"gently": True}))
        assert bench.history == [("stop", "wheel", {}), ("stop", "arm", {"gently": True})]

    async def test_calls_that_use_what_moves_end_and_no_others(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mover"), thing("lamp"), probe("gauge"))
        bench.deeds = {"wheel": for_ever, "lamp": for_ever, "gauge": for_ever}
        moving = [await bench.begun(bench.do("wheel")) for _ in range(2)]
        reading = bench.call(READ, common.GetReadingsRequest(name="gauge"))
        others = [await bench.begun(bench.do("lamp")), await bench.begun(reading)]
        await bench.ask("StopAll")
        for task in moving:
            with refused() as told:
                await task
            assert told.status is Status.CANCELLED
            assert told.words == "cancelled, because everything was told to stop"
        assert not any(task.done() for task in others)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def test_a_push_ends_which_nothing_else_could_stop(self, bench: Bench) -> None:
        await bench.apply({"name": "bell", "api": str(BUTTON), "model": "bell"})
        bench.deeds["bell"] = for_ever
        push = await bench.begun(bench.call(PUSH, button.PushRequest(name="bell")))
        await bench.ask("StopAll")
        await bench.clock.settle()
        assert push.done(), "it is pushed for ever"
        with refused() as told:
            await push
        assert (told.status, told.words) == (Status.CANCELLED, STOPPED)

    async def test_calls_that_wait_for_their_turn_never_move_anything(self, bench: Bench) -> None:
        await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"}, thing("lamp"))
        request = motor.GoForRequest(name="wheel", rpm=1, revolutions=1)
        moves = [await bench.begun(bench.call(GO_FOR, request)) for _ in range(PLACES + 3)]
        bench.deeds["lamp"] = for_ever
        others = [await bench.begun(bench.do("lamp")) for _ in range(PLACES + 1)]
        await bench.ask("StopAll")
        await bench.clock.settle()
        assert all(move.done() for move in moves), "some waited, and move now"
        for move in moves:
            with refused() as told:
                await move
            assert (told.status, told.words) == (Status.CANCELLED, STOPPED)
        assert not any(other.done() for other in others)
        await gone(others)

    async def test_what_only_looks_keeps_its_turn(self, bench: Bench) -> None:
        gate = asyncio.Event()
        bench.scripts["look", "wheel"] = gate.wait
        await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"})
        look = "/viam.component.motor.v1.MotorService/IsMoving"
        request = motor.IsMovingRequest(name="wheel")
        looks = [await bench.begun(bench.call(look, request)) for _ in range(PLACES + 1)]
        await bench.ask("StopAll")
        gate.set()
        assert not any(reply.is_moving for reply in await asyncio.gather(*looks))

    async def test_a_move_that_is_still_planned_ends_and_those_behind_it(
        self, bench: Bench
    ) -> None:
        planner = {"name": "planner", "api": str(MOTION), "model": "planner"}
        await bench.apply(services=[planner])
        bench.deeds["planner"] = for_ever
        request = motion.MoveRequest(name="planner")
        moves = [await bench.begun(bench.call(MOVE, request)) for _ in range(PLACES + 1)]
        await bench.ask("StopAll")
        await bench.clock.settle()
        assert all(move.done() for move in moves), "some are still to come"
        for move in moves:
            with refused() as told:
                await move
            assert told.words == STOPPED

    async def test_the_errors_of_all_are_told_and_the_others_are_stopped(
        self, bench: Bench
    ) -> None:
        await bench.apply(*(thing(name, "mover") for name in ("a", "b", "c")))
        bench.scripts["stop", "a"] = failing("the brake is worn")
        bench.scripts["stop", "c"] = failing("no power")
        with refused() as told:
            await bench.ask("StopAll")
        assert told.words == (
            "failed to stop component named a with error the brake is worn; "
            "failed to stop component named c with error no power"
        )
        assert {name for what, name, *_ in bench.history if what == "stop"} == {"a", "b", "c"}

    async def test_one_that_cannot_be_asked_does_not_keep_the_others_moving(
        self, bench: Bench
    ) -> None:
        await bench.apply(*(thing(name, "mover") for name in ("a", "b", "c", "d")))
        resources: dict[str, Any] = {
            name.short: node.live.resource
            for name, node in bench.machine.nodes.items()
            if node.live is not None
        }

        def takes_nothing() -> None: ...

        def plain(*, extra: object = None) -> str:
            return "not awaitable"

        async def exits(*, extra: object = None) -> None:
            raise SystemExit(3)

        resources["a"].stop = takes_nothing
        resources["b"].stop = plain
        resources["c"].stop = exits
        with refused() as told:
            await bench.ask("StopAll")
        failures = told.words.split("; ")
        assert [each.split(" with error ")[0] for each in failures] == [
            f"failed to stop component named {name}" for name in ("a", "b", "c")
        ]
        assert ("stop", "d", {}) in bench.history

    async def test_what_is_being_changed_in_place_is_stopped_too(self, bench: Bench) -> None:
        await bench.apply(thing("wheel", "mutable_mover"))
        bench.scripts["reconfigure", "wheel"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": [thing("wheel", "mutable_mover", label="new")]})
        await bench.clock.advance(1)
        await bench.ask("StopAll")
        assert bench.history[-1] == ("stop", "wheel", {})
        await bench.clock.advance(5)

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    async def test_odd_parameters_stop_it_all_the_same(self, bench: Bench, number: float) -> None:
        await bench.apply(thing("wheel", "mover"))
        request = stop_all(wheel={"speed": number}, nobody={})
        request.extra.add(name=common.ResourceName(name="::"))
        await bench.ask("StopAll", request)
        ((_, _, given),) = [each for each in bench.history if each[0] == "stop"]
        assert str(given) == str({"speed": number})


async def gone(calls: list[asyncio.Task[Any]]) -> None:
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
    async def test_dependents_before_what_they_depend_on(self, bench: Bench) -> None:
        await bench.apply(thing("c", needs="b"), thing("a"), thing("b", needs="a"))
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        assert closing.result() == []
        assert bench.history[3:] == [("close", "c"), ("close", "b"), ("close", "a")]

    async def test_what_moves_stops_before_anything_closes(self, bench: Bench) -> None:
        await bench.apply(thing("base", needs="wheel"), thing("wheel", "mover"))
        bench.scripts["close", "base"] = lambda: bench.clock.sleep(20)
        bench.history.clear()
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.settle()
        assert bench.history == [("stop", "wheel", {}), ("close", "base")]
        await bench.clock.advance(20)
        assert closing.result() == []
        assert bench.history[2:] == [("stop", "wheel", {}), ("close", "wheel")]

    async def test_a_call_that_moves_something_ends_at_once(self, bench: Bench) -> None:
        await bench.apply(thing("base", needs="wheel"), thing("wheel", "mover"))
        bench.scripts["close", "base"] = lambda: bench.clock.sleep(20)
        bench.deeds["wheel"] = for_ever
        call = await bench.begun(bench.do("wheel"))
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.settle()
        assert call.done(), "it goes on until the base is closed"
        with refused() as told:
            await call
        assert told.words == "cancelled, because the machine is shutting down"
        await bench.clock.advance(20)
        assert closing.result() == []

    async def test_a_job_that_does_not_end_keeps_nothing_moving(self, bench: Bench) -> None:
        async def stubborn(command: Mapping[str, Any]) -> None:
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
        bench.deeds["lamp"] = stubborn
        await bench.clock.advance(1)
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        meanwhile = list(bench.history)
        assert not closing.done()
        released.set()
        await bench.clock.advance(1)
        assert closing.result() == []
        assert ("stop", "wheel", {}) in meanwhile

    async def test_what_cannot_be_stopped_is_told_and_closed_all_the_same(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bench.apply(thing("wheel", "mover"), thing("arm", "mover"))
        bench.scripts["stop", "wheel"] = failing("the brake is worn")
        bench.history.clear()
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.settle()
        assert closing.result() == []
        assert ("stop", "arm", {}) in bench.history
        assert (
            "closing the machine although something may still move: "
            "failed to stop component named wheel with error the brake is worn"
        ) in caplog.messages

    async def test_one_that_takes_long_to_stop_does_not_hold_up_the_others_for_long(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench = Bench()
        await bench.apply(thing("wheel", "mover"), thing("lamp"))
        bench.scripts["stop", "wheel"] = for_ever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.advance(1.9)
        assert ("close", "lamp") not in bench.history
        await bench.clock.advance(0.2)
        assert ("close", "lamp") in bench.history
        assert "some resources still move after 2s; closing them anyway" in caplog.messages
        await bench.clock.advance(30)
        assert closing.result() == []
        assert "named wheel with error it did not stop within 10s" in caplog.text

    async def test_one_that_hangs_is_named_and_does_not_keep_the_others_open(self) -> None:
        bench = Bench()
        await bench.apply(thing("b", needs="a"), thing("a"), thing("other"))
        bench.scripts["close", "b"] = for_ever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=45))
        await bench.clock.advance(29)
        assert ("close", "other") in bench.history
        assert not closing.done()
        await bench.clock.advance(2)
        assert closing.done()
        assert bench.history[-1] == ("close", "a")

    async def test_a_budget_is_kept(self) -> None:
        bench = Bench()
        await bench.apply(thing("b", needs="a"), thing("a"))
        bench.scripts["close", "b"] = for_ever
        closing = asyncio.ensure_future(bench.machine.aclose(budget=5))
        await bench.clock.advance(7)
        assert closing.result() == [full("a"), full("b")]

    async def test_nothing_is_applied_any_more(self, bench: Bench) -> None:
        await bench.machine.aclose()
        with pytest.raises(RuntimeError, match="is being closed"):
            bench.begin({"components": [thing("a")]})


async def test_a_name_says_which_api(bench: Bench) -> None:
    """Two resources may share their short name."""
    await bench.apply(thing("same"), probe("same"))

    async def read(**_: Any) -> dict[str, Any]:
        return {"celsius": 21.5}

    bench.deeds["same"] = read
    reading = await bench.call(READ, common.GetReadingsRequest(name="same"))
    assert reading.readings["celsius"].number_value == 21.5
    bench.deeds.clear()
    assert await bench.do("same", {"x": 1}) == {"x": 1}
    assert [name.api for name in bench.machine.nodes] == [GENERIC, SENSOR]

"""Calls under way: listed, cancelled, waited for, ended when their time is up."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from grpclib.const import Status
from tests.served import refused
from tests.unit.robot.bench import DO_COMMAND, Bench, for_ever, thing
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.utils import struct_to_dict

from cogwork.core.errors import InvalidRequest
from cogwork.robot.operations import MAX_CALL_SECONDS, current_operation


def by_id(operation_id: str) -> robot.CancelOperationRequest:
    return robot.CancelOperationRequest(id=operation_id)


def block(operation_id: str) -> robot.BlockForOperationRequest:
    return robot.BlockForOperationRequest(id=operation_id)


async def sighing(command: Mapping[str, Any]) -> None:
    """Has something to do after it is cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)


class TestListing:
    async def test_the_oldest_first_and_not_the_one_that_asks(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.deeds = {"a": for_ever, "b": for_ever}
        started = bench.clock.time()
        first = await bench.begun(bench.do("a", {"go": 1}))
        await bench.clock.advance(3)
        second = await bench.begun(bench.do("b"))
        listed = await bench.operations()
        assert [(each.method, each.arguments["name"]) for each in listed] == [
            (DO_COMMAND, "a"),
            (DO_COMMAND, "b"),
        ]
        assert struct_to_dict(listed[0].arguments) == {"name": "a", "command": {"go": 1}}
        assert [each.started.seconds for each in listed] == [int(started), int(started) + 3]
        assert len({each.id for each in listed}) == 2
        assert [each.id for each in listed] == [each.id for each in await bench.operations()]
        await end(bench, first, second)

    async def test_none_when_there_is_none(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        assert await bench.do("a", {"x": 1}) == {"x": 1}
        assert await bench.operations() == []

    async def test_health_and_reflection_are_not_operations(self, bench: Bench) -> None:
        method = bench.table.find("/grpc.health.v1.Health/Check")
        assert method is not None
        assert bench.machine.operations.wrap(method, method.handle) is method.handle

    @pytest.mark.parametrize(
        ("command", "shown"),
        [
            ({"text": "x" * 201}, {"text": "x" * 200 + "… (201 characters)"}),
            ({"text": "x" * 200}, {"text": "x" * 200}),
            ({"list": [1] * 201}, {"list": [1] * 200 + ["… (201 in all)"]}),
            ({"deep": {"er": ["y" * 300]}}, {"deep": {"er": ["y" * 200 + "… (300 characters)"]}}),
        ],
    )
    async def test_long_arguments_are_cut(
        self, bench: Bench, command: dict[str, Any], shown: dict[str, Any]
    ) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a", command))
        (listed,) = await bench.operations()
        assert struct_to_dict(listed.arguments)["command"] == shown
        await end(bench, task)

    async def test_a_number_that_json_does_not_have_hides_nobody(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        tasks = [
            await bench.begun(bench.do("a", {"x": float(number)})) for number in ("nan", "inf", 1)
        ]
        listed = await bench.operations()
        assert len(listed) == 3
        assert struct_to_dict(listed[2].arguments)["command"] == {"x": 1}
        await end(bench, *tasks)

    async def test_large_requests_cost_whoever_lists_them_nothing(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        large = {"matrix": [[float(number) for number in range(100)]] * 100}
        many = {f"key {number}": "x" * 150 for number in range(500)}
        tasks = [await bench.begun(bench.do("a", command)) for command in (large, many, {"x": 1})]
        await bench.operations()  # the service is imported with the first question
        began = time.perf_counter()
        listed = await bench.operations()
        assert time.perf_counter() - began < 0.05
        assert [struct_to_dict(each.arguments)["name"] for each in listed] == ["a"] * 3
        assert sum(each.ByteSize() for each in listed) < 50_000
        assert struct_to_dict(listed[2].arguments)["command"] == {"x": 1}
        await end(bench, *tasks)

    async def test_a_call_of_a_service_that_nobody_serves_is_listed_too(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        with refused() as told:
            await bench.call("/acme.Nobody/Knows", b"\x0a\x01a")
        assert told.status is Status.UNIMPLEMENTED
        assert await bench.operations() == []


class TestCancelling:
    async def test_by_id_and_no_other(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = sighing
        first, second = [await bench.begun(bench.do("a")) for _ in range(2)]
        wanted, other = [each.id for each in await bench.operations()]
        await bench.ask("CancelOperation", by_id(wanted))
        with refused() as told:
            await first
        assert told.status is Status.CANCELLED
        assert told.words == f"operation {wanted} was cancelled"
        assert [each.id for each in await bench.operations()] == [other]
        await end(bench, second)

    async def test_one_that_is_not_there_is_as_good_as_cancelled(self, bench: Bench) -> None:
        await bench.ask("CancelOperation", by_id("nobody"))
        await bench.ask("CancelOperation")
        await bench.ask("BlockForOperation", block("nobody"))

    async def test_an_id_given_by_the_client_is_used(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a", metadata={"opid": "mine"}))
        (listed,) = await bench.operations()
        assert listed.id == "mine"
        await bench.ask("CancelOperation", by_id("mine"))
        with refused() as told:
            await task
        assert told.words == "operation mine was cancelled"

    @pytest.mark.parametrize("given", ["", b"\xff\x00"])
    async def test_an_id_that_is_none_is_not(self, bench: Bench, given: str | bytes) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a", metadata={"opid": given}))
        (listed,) = await bench.operations()
        assert len(listed.id) == 36
        await end(bench, task)

    async def test_a_question_about_an_operation_is_not_that_operation(self, bench: Bench) -> None:
        """A client may send the id it asks about with all that it asks."""
        await bench.apply(thing("a"))
        same = {"opid": "same"}
        await bench.ask("CancelOperation", by_id("same"), metadata=same)
        blocking = await bench.begun(bench.ask("BlockForOperation", block("same"), metadata=same))
        assert blocking.done()
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a", metadata=same))
        await bench.ask("CancelOperation", by_id("same"), metadata=same)
        with refused() as told:
            await task
        assert told.status is Status.CANCELLED

    async def test_all_calls_made_on_behalf_of_one_operation_end(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.deeds = {"a": for_ever, "b": for_ever}
        tasks = [await bench.begun(bench.do(n, metadata={"opid": "one"})) for n in ("a", "b")]
        blocking = await bench.begun(bench.ask("BlockForOperation", block("one")))
        await bench.ask("CancelOperation", by_id("one"))
        for task in tasks:
            with refused() as told:
                await task
            assert told.words == "operation one was cancelled"
        await blocking

    async def test_twice_is_once(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = sighing
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        await bench.ask("CancelOperation", by_id("one"))
        await bench.ask("CancelOperation", by_id("one"))
        with refused() as told:
            await task
        assert told.status is Status.CANCELLED

    async def test_a_driver_that_makes_another_error_of_it_does_not_hide_why(
        self, bench: Bench
    ) -> None:
        async def blames(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("aborted") from None

        await bench.apply(thing("a"))
        bench.deeds["a"] = blames
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        await bench.ask("CancelOperation", by_id("one"))
        with refused() as told:
            await task
        assert (told.status, told.words) == (Status.CANCELLED, "operation one was cancelled")

    async def test_a_driver_that_finishes_all_the_same_has_finished(self, bench: Bench) -> None:
        async def finishes(command: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return {"done": True}
            return {}

        await bench.apply(thing("a"))
        bench.deeds["a"] = finishes
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        await bench.ask("CancelOperation", by_id("one"))
        assert await task == {"done": True}


class TestBlocking:
    async def test_until_it_is_over(self, bench: Bench) -> None:
        released = asyncio.Event()

        async def waits(command: Mapping[str, Any]) -> None:
            await released.wait()

        await bench.apply(thing("a"))
        bench.deeds["a"] = waits
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        blocking = [
            await bench.begun(bench.ask("BlockForOperation", block("one"))) for _ in range(3)
        ]
        await bench.clock.advance(100)
        assert not any(each.done() for each in blocking)
        released.set()
        await asyncio.gather(task, *blocking)

    async def test_whoever_stops_waiting_ends_nothing(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        leaving, staying = [
            await bench.begun(bench.ask("BlockForOperation", block("one"))) for _ in range(2)
        ]
        leaving.cancel()
        await bench.clock.settle()
        assert leaving.cancelled()
        assert not task.done()
        assert not staying.done()
        await end(bench, task)
        await staying


class TestDeadline:
    async def test_ten_minutes_for_a_call_without_one(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a"))
        await bench.clock.advance(MAX_CALL_SECONDS - 1)
        assert not task.done()
        await bench.clock.advance(2)
        with refused() as told:
            await task
        assert told.status is Status.DEADLINE_EXCEEDED
        assert told.words == (
            f"{DO_COMMAND} was cancelled after 600s; set a deadline for calls that take longer"
        )

    async def test_each_has_its_own_ten_minutes(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        first = await bench.begun(bench.do("a"))
        await bench.clock.advance(300)
        second = await bench.begun(bench.do("a"))
        await bench.clock.advance(301)
        assert (first.done(), second.done()) == (True, False)
        await bench.clock.advance(300)
        assert second.done()
        for task in (first, second):
            with refused() as told:
                await task
            assert told.status is Status.DEADLINE_EXCEEDED

    async def test_a_deadline_of_the_clients_own_counts_alone(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = for_ever
        long = await bench.begun(bench.do("a", timeout=7200))
        short = await bench.begun(bench.do("a"))
        await bench.clock.advance(MAX_CALL_SECONDS + 2)
        assert (long.done(), short.done()) == (False, True)
        with refused():
            await short
        await end(bench, long)

    async def test_a_stream_lasts_as_long_as_somebody_listens(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        method = bench.table.find("/acme.Nobody/Converses")
        assert method is not None
        handle = bench.machine.operations.wrap(method, for_ever)
        stream: Any = None
        task = await bench.begun(handle(stream))
        await bench.clock.advance(10 * MAX_CALL_SECONDS)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TestReplacing:
    """A resource that calls are using is closed."""

    async def test_calls_that_finish_within_a_second_do_finish(self, bench: Bench) -> None:
        async def short(command: Mapping[str, Any]) -> Mapping[str, Any]:
            await bench.clock.sleep(0.9)
            bench.history.append("finished")
            return {"finished": True}

        await bench.apply(thing("a"))
        bench.deeds["a"] = short
        task = await bench.begun(bench.do("a"))
        bench.begin({"components": [thing("a", label="new")]})
        await bench.clock.advance(1)
        assert await task == {"finished": True}
        assert bench.history == [("build", "a"), "finished", ("close", "a"), ("build", "a")]

    async def test_the_others_are_told_to_try_again(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.deeds = {"a": for_ever, "b": for_ever}
        task = await bench.begun(bench.do("a"))
        unrelated = await bench.begun(bench.do("b"))
        outcome = bench.begin({"components": [thing("a", label="new"), thing("b")]})
        await bench.clock.advance(0.99)
        assert not task.done()
        with refused() as told:
            await bench.do("a")
        assert told.status is Status.UNAVAILABLE
        assert told.words == (
            "resource rdk:component:generic/a not available; "
            "reason=it is being reconfigured; try again"
        )
        await bench.clock.advance(0.02)
        with refused() as told:
            await task
        assert told.status is Status.UNAVAILABLE
        assert told.words == "rdk:component:generic/a is being reconfigured; try again"
        assert outcome.done()
        assert not unrelated.done()
        bench.deeds.clear()
        assert await bench.do("a", {"x": 1}) == {"x": 1}
        await end(bench, unrelated)

    async def test_what_a_cancelled_call_has_to_tidy_up_comes_before_the_close(
        self, bench: Bench
    ) -> None:
        async def tidies(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                bench.history.append("tidied")

        await bench.apply(thing("a"))
        bench.deeds["a"] = tidies
        task = await bench.begun(bench.do("a"))
        bench.begin({"components": []})
        await bench.clock.advance(1.5)
        with refused() as told:
            await task
        assert told.status is Status.UNAVAILABLE
        assert bench.history == [("build", "a"), "tidied", ("close", "a")]

    async def test_one_that_ignores_being_cancelled_delays_the_close_by_a_second(
        self, bench: Bench
    ) -> None:
        released = asyncio.Event()

        async def stubborn(command: Mapping[str, Any]) -> None:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue

        await bench.apply(thing("a"))
        bench.deeds["a"] = stubborn
        task = await bench.begun(bench.do("a"))
        outcome = bench.begin({"components": []})
        await bench.clock.advance(2.1)
        assert bench.history[-1] == ("close", "a")
        assert outcome.done()
        released.set()
        await task

    async def test_a_change_in_place_disturbs_no_call_under_way(self, bench: Bench) -> None:
        await bench.apply(thing("a", "mutable"))
        bench.deeds["a"] = for_ever
        task = await bench.begun(bench.do("a"))
        await bench.apply(thing("a", "mutable", label="new"))
        await bench.clock.advance(10)
        assert not task.done()
        await end(bench, task)

    async def test_while_it_is_changed_in_place_calls_are_told_so(self, bench: Bench) -> None:
        await bench.apply(thing("a", "mutable"))
        bench.scripts["reconfigure", "a"] = lambda: bench.clock.sleep(5)
        bench.begin({"components": [thing("a", "mutable", label="new")]})
        await bench.clock.advance(1)
        with refused() as told:
            await bench.do("a")
        assert told.status is Status.UNAVAILABLE
        assert told.words.endswith("reason=it is being reconfigured; try again")
        await bench.clock.advance(5)
        assert await bench.do("a") == {}

    async def test_everything_ends_when_the_machine_closes(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b", needs="a"))
        bench.deeds = {"a": for_ever, "b": for_ever}
        tasks = [await bench.begun(bench.do(name)) for name in ("a", "b")]
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.advance(5)
        assert closing.result() == []
        for task in tasks:
            with refused() as told:
                await task
            assert told.status is Status.UNAVAILABLE
        assert bench.history[2:] == [("close", "b"), ("close", "a")]


class TestClientsThatGoAway:
    async def test_their_calls_are_over_and_nobody_waits_for_them(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.deeds["a"] = sighing
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        blocking = await bench.begun(bench.ask("BlockForOperation", block("one")))
        task.cancel()
        await bench.clock.settle()
        assert task.cancelled()
        assert blocking.done()
        assert await bench.operations() == []

    async def test_going_away_while_being_cancelled_is_fine(self, bench: Bench) -> None:
        async def slowly(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await bench.clock.sleep(1)

        await bench.apply(thing("a"))
        bench.deeds["a"] = slowly
        task = await bench.begun(bench.do("a", metadata={"opid": "one"}))
        await bench.ask("CancelOperation", by_id("one"))
        await bench.clock.settle()
        task.cancel()
        await bench.clock.advance(2)
        assert task.done()
        assert await bench.operations() == []
        await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_kept_of_a_call_that_is_over(bench: Bench) -> None:
    seen: list[weakref.ref[Any]] = []

    async def remembered(command: Mapping[str, Any]) -> Mapping[str, Any]:
        operation = current_operation()
        assert operation is not None
        seen.append(weakref.ref(operation.stream))
        if command.get("fail"):
            raise InvalidRequest("no")
        return {}

    await bench.apply(thing("a"))
    bench.deeds["a"] = remembered
    for fail in (False, True):
        await asyncio.gather(
            *(bench.do("a", {"fail": fail}) for _ in range(50)), return_exceptions=True
        )
    assert current_operation() is None
    await bench.clock.advance(2)
    gc.collect()
    assert len(seen) == 100
    assert [each for each in seen if each() is not None] == []


async def end(bench: Bench, *tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await bench.clock.settle()

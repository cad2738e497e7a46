"""Operations, the running calls: listing, cancelling, blocking and deadlines."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.support.sizes import limit
from tests.support.waiting import run_others
from tests.unit.robot.bench import DO_COMMAND, Bench, InProcess, thing, wait_forever
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.utils import struct_to_dict

from cogwork.core.errors import InvalidRequest
from cogwork.robot.middleware.operations import MAX_CALL_SECONDS, current_operation


def cancel_request(operation_id: str) -> robot.CancelOperationRequest:
    return robot.CancelOperationRequest(id=operation_id)


def block_request(operation_id: str) -> robot.BlockForOperationRequest:
    return robot.BlockForOperationRequest(id=operation_id)


async def wait_with_cleanup(command: Mapping[str, Any]) -> None:
    """Wait forever, with asynchronous cleanup after the cancellation."""
    try:
        await asyncio.Event().wait()
    finally:
        await run_others()


class TestGetOperations:
    async def test_operations_are_listed_oldest_first_without_the_own_call(
        self, bench: Bench
    ) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.behaviors = {"a": wait_forever, "b": wait_forever}
        started = bench.clock.time()
        first = await bench.start_call(bench.do_command("a", {"go": 1}))
        await bench.clock.advance(3)
        second = await bench.start_call(bench.do_command("b"))
        listed = await bench.operations()
        assert [(each.method, each.arguments["name"]) for each in listed] == [
            (DO_COMMAND, "a"),
            (DO_COMMAND, "b"),
        ]
        assert struct_to_dict(listed[0].arguments) == {"name": "a", "command": {"go": 1}}
        assert [each.started.seconds for each in listed] == [int(started), int(started) + 3]
        assert len({each.id for each in listed}) == 2
        assert [each.id for each in listed] == [each.id for each in await bench.operations()]
        await cancel_tasks(bench, first, second)

    async def test_finished_call_is_not_listed(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        assert await bench.do_command("a", {"x": 1}) == {"x": 1}
        assert await bench.operations() == []

    async def test_health_and_reflection_are_not_operations(self, bench: Bench) -> None:
        seen: list[list[robot.Operation]] = []

        async def handle(_: object) -> None:
            seen.append(await bench.operations())

        method = bench.table.find("/grpc.health.v1.Health/Check")
        assert method is not None
        await bench.machine.operations.wrap(method, handle)(InProcess(None))
        assert seen == [[]]

    @pytest.mark.parametrize(
        ("command", "shown"),
        [
            ({"text": "x" * 201}, {"text": "x" * 200 + "… (201 characters)"}),
            ({"text": "x" * 200}, {"text": "x" * 200}),
            ({"list": [1] * 201}, {"list": [1] * 200 + ["… (201 in all)"]}),
            ({"deep": {"er": ["y" * 300]}}, {"deep": {"er": ["y" * 200 + "… (300 characters)"]}}),
        ],
    )
    async def test_long_arguments_are_truncated(
        self, bench: Bench, command: dict[str, Any], shown: dict[str, Any]
    ) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a", command))
        (listed,) = await bench.operations()
        assert struct_to_dict(listed.arguments)["command"] == shown
        await cancel_tasks(bench, task)

    async def test_nan_and_infinity_do_not_hide_operations(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        tasks = [
            await bench.start_call(bench.do_command("a", {"x": float(number)}))
            for number in ("nan", "inf", 1)
        ]
        listed = await bench.operations()
        assert len(listed) == 3
        assert struct_to_dict(listed[2].arguments)["command"] == {"x": 1}
        await cancel_tasks(bench, *tasks)

    async def test_listing_large_requests_is_fast_and_small(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        large = {"matrix": [[float(number) for number in range(100)]] * 100}
        many = {f"key {number}": "x" * 150 for number in range(500)}
        tasks = [
            await bench.start_call(bench.do_command("a", command))
            for command in (large, many, {"x": 1})
        ]
        await bench.operations()  # the service is imported by the first call
        started = time.perf_counter()
        listed = await bench.operations()
        assert time.perf_counter() - started < limit(0.05)
        assert [struct_to_dict(each.arguments)["name"] for each in listed] == ["a"] * 3
        assert sum(each.ByteSize() for each in listed) < 50_000
        assert struct_to_dict(listed[2].arguments)["command"] == {"x": 1}
        await cancel_tasks(bench, *tasks)

    async def test_call_of_an_unserved_service_leaves_no_operation(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        with refused() as error:
            await bench.call("/acme.Nobody/Knows", b"\x0a\x01a")
        assert error.status is Status.UNIMPLEMENTED
        assert await bench.operations() == []


class TestCancelOperation:
    async def test_cancel_ends_only_the_operation_with_the_id(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_with_cleanup
        first, second = [await bench.start_call(bench.do_command("a")) for _ in range(2)]
        wanted, other = [each.id for each in await bench.operations()]
        await bench.call_robot("CancelOperation", cancel_request(wanted))
        with refused() as error:
            await first
        assert error.status is Status.CANCELLED
        assert error.words == f"operation {wanted} was cancelled"
        assert [each.id for each in await bench.operations()] == [other]
        await cancel_tasks(bench, second)

    async def test_unknown_operation_counts_as_ended(self, bench: Bench) -> None:
        await bench.call_robot("CancelOperation", cancel_request("nobody"))
        await bench.call_robot("CancelOperation")
        await bench.call_robot("BlockForOperation", block_request("nobody"))

    async def test_operation_id_of_the_client_is_used(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "mine"}))
        (listed,) = await bench.operations()
        assert listed.id == "mine"
        await bench.call_robot("CancelOperation", cancel_request("mine"))
        with refused() as error:
            await task
        assert error.words == "operation mine was cancelled"

    @pytest.mark.parametrize("given", ["", b"\xff\x00"])
    async def test_invalid_operation_id_is_replaced(self, bench: Bench, given: str | bytes) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a", metadata={"opid": given}))
        (listed,) = await bench.operations()
        assert len(listed.id) == 36
        await cancel_tasks(bench, task)

    async def test_cancel_and_block_calls_are_not_the_operation_itself(self, bench: Bench) -> None:
        """A client may send the id in the metadata of all its calls."""
        await bench.apply(thing("a"))
        same = {"opid": "same"}
        await bench.call_robot("CancelOperation", cancel_request("same"), metadata=same)
        blocking = await bench.start_call(
            bench.call_robot("BlockForOperation", block_request("same"), metadata=same)
        )
        assert blocking.done()
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a", metadata=same))
        await bench.call_robot("CancelOperation", cancel_request("same"), metadata=same)
        with refused() as error:
            await task
        assert error.status is Status.CANCELLED

    async def test_cancel_ends_all_calls_with_the_operation_id(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.behaviors = {"a": wait_forever, "b": wait_forever}
        tasks = [
            await bench.start_call(bench.do_command(n, metadata={"opid": "one"}))
            for n in ("a", "b")
        ]
        blocking = await bench.start_call(
            bench.call_robot("BlockForOperation", block_request("one"))
        )
        await bench.call_robot("CancelOperation", cancel_request("one"))
        for task in tasks:
            with refused() as error:
                await task
            assert error.words == "operation one was cancelled"
        await blocking

    async def test_cancel_is_idempotent(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_with_cleanup
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        await bench.call_robot("CancelOperation", cancel_request("one"))
        await bench.call_robot("CancelOperation", cancel_request("one"))
        with refused() as error:
            await task
        assert error.status is Status.CANCELLED

    async def test_driver_error_after_cancellation_reports_the_cancellation(
        self, bench: Bench
    ) -> None:
        async def raise_other_error(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("aborted") from None

        await bench.apply(thing("a"))
        bench.behaviors["a"] = raise_other_error
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        await bench.call_robot("CancelOperation", cancel_request("one"))
        with refused() as error:
            await task
        assert (error.status, error.words) == (Status.CANCELLED, "operation one was cancelled")

    async def test_driver_that_returns_after_cancellation_succeeds(self, bench: Bench) -> None:
        async def return_after_cancellation(command: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return {"done": True}
            return {}

        await bench.apply(thing("a"))
        bench.behaviors["a"] = return_after_cancellation
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        await bench.call_robot("CancelOperation", cancel_request("one"))
        assert await task == {"done": True}


class TestBlockForOperation:
    async def test_block_waits_until_the_operation_ends(self, bench: Bench) -> None:
        released = asyncio.Event()

        async def wait_for_release(command: Mapping[str, Any]) -> None:
            await released.wait()

        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_for_release
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        blocking = [
            await bench.start_call(bench.call_robot("BlockForOperation", block_request("one")))
            for _ in range(3)
        ]
        await bench.clock.advance(100)
        assert not any(each.done() for each in blocking)
        released.set()
        await asyncio.gather(task, *blocking)

    async def test_cancelled_block_does_not_end_the_operation(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        leaving, staying = [
            await bench.start_call(bench.call_robot("BlockForOperation", block_request("one")))
            for _ in range(2)
        ]
        leaving.cancel()
        await bench.clock.settle()
        assert leaving.cancelled()
        assert not task.done()
        assert not staying.done()
        await cancel_tasks(bench, task)
        await staying


class TestDeadline:
    async def test_call_without_deadline_ends_after_ten_minutes(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a"))
        await bench.clock.advance(MAX_CALL_SECONDS - 1)
        assert not task.done()
        await bench.clock.advance(2)
        with refused() as error:
            await task
        assert error.status is Status.DEADLINE_EXCEEDED
        assert error.words == (
            f"{DO_COMMAND} was cancelled after 600s; set a deadline for calls that take longer"
        )

    async def test_each_call_has_its_own_deadline(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        first = await bench.start_call(bench.do_command("a"))
        await bench.clock.advance(300)
        second = await bench.start_call(bench.do_command("a"))
        await bench.clock.advance(301)
        assert (first.done(), second.done()) == (True, False)
        await bench.clock.advance(300)
        assert second.done()
        for task in (first, second):
            with refused() as error:
                await task
            assert error.status is Status.DEADLINE_EXCEEDED

    async def test_deadline_of_the_client_replaces_the_default(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_forever
        long = await bench.start_call(bench.do_command("a", timeout=7200))
        short = await bench.start_call(bench.do_command("a"))
        await bench.clock.advance(MAX_CALL_SECONDS + 2)
        assert (long.done(), short.done()) == (False, True)
        with refused():
            await short
        await cancel_tasks(bench, long)

    async def test_stream_has_no_default_deadline(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        method = bench.table.find("/acme.Nobody/Converses")
        assert method is not None
        handle = bench.machine.operations.wrap(method, wait_forever)
        stream: Any = None
        task = await bench.start_call(handle(stream))
        await bench.clock.advance(10 * MAX_CALL_SECONDS)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class TestReplacedResource:
    """Replacing a resource that calls are using."""

    async def test_calls_get_one_second_to_finish(self, bench: Bench) -> None:
        async def short(command: Mapping[str, Any]) -> Mapping[str, Any]:
            await bench.clock.sleep(0.9)
            bench.history.append("finished")
            return {"finished": True}

        await bench.apply(thing("a"))
        bench.behaviors["a"] = short
        task = await bench.start_call(bench.do_command("a"))
        bench.start_apply({"components": [thing("a", label="new")]})
        await bench.clock.advance(1)
        assert await task == {"finished": True}
        assert bench.history == [("build", "a"), "finished", ("close", "a"), ("build", "a")]

    async def test_longer_calls_are_ended_as_unavailable(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b"))
        bench.behaviors = {"a": wait_forever, "b": wait_forever}
        task = await bench.start_call(bench.do_command("a"))
        unrelated = await bench.start_call(bench.do_command("b"))
        outcome = bench.start_apply({"components": [thing("a", label="new"), thing("b")]})
        await bench.clock.advance(0.99)
        assert not task.done()
        await bench.clock.advance(0.02)
        with refused() as error:
            await task
        assert error.status is Status.UNAVAILABLE
        assert error.words == "rdk:component:generic/a is being reconfigured; try again"
        assert outcome.done()
        assert not unrelated.done()
        bench.behaviors.clear()
        assert await bench.do_command("a", {"x": 1}) == {"x": 1}
        await cancel_tasks(bench, unrelated)

    async def test_cleanup_of_a_cancelled_call_precedes_the_close(self, bench: Bench) -> None:
        async def record_cleanup(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await run_others()
                bench.history.append("tidied")

        await bench.apply(thing("a"))
        bench.behaviors["a"] = record_cleanup
        task = await bench.start_call(bench.do_command("a"))
        bench.start_apply({"components": []})
        await bench.clock.advance(1.5)
        with refused() as error:
            await task
        assert error.status is Status.UNAVAILABLE
        assert bench.history == [("build", "a"), "tidied", ("close", "a")]

    async def test_call_that_ignores_cancellation_delays_the_close_briefly(
        self, bench: Bench
    ) -> None:
        released = asyncio.Event()

        async def ignore_cancellation(command: Mapping[str, Any]) -> None:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue

        await bench.apply(thing("a"))
        bench.behaviors["a"] = ignore_cancellation
        task = await bench.start_call(bench.do_command("a"))
        outcome = bench.start_apply({"components": []})
        await bench.clock.advance(2.1)
        assert bench.history[-1] == ("close", "a")
        assert outcome.done()
        released.set()
        await task

    async def test_reconfigure_does_not_end_running_calls(self, bench: Bench) -> None:
        await bench.apply(thing("a", "mutable"))
        bench.behaviors["a"] = wait_forever
        task = await bench.start_call(bench.do_command("a"))
        await bench.apply(thing("a", "mutable", label="new"))
        await bench.clock.advance(10)
        assert not task.done()
        await cancel_tasks(bench, task)

    async def test_all_calls_end_when_the_machine_closes(self, bench: Bench) -> None:
        await bench.apply(thing("a"), thing("b", needs="a"))
        bench.behaviors = {"a": wait_forever, "b": wait_forever}
        tasks = [await bench.start_call(bench.do_command(name)) for name in ("a", "b")]
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.advance(5)
        assert closing.result() == []
        for task in tasks:
            with refused() as error:
                await task
            assert error.status is Status.UNAVAILABLE
        assert bench.history[2:] == [("close", "b"), ("close", "a")]


class TestDisconnectedClients:
    async def test_call_of_a_disconnected_client_ends(self, bench: Bench) -> None:
        await bench.apply(thing("a"))
        bench.behaviors["a"] = wait_with_cleanup
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        blocking = await bench.start_call(
            bench.call_robot("BlockForOperation", block_request("one"))
        )
        task.cancel()
        await bench.clock.settle()
        assert task.cancelled()
        assert blocking.done()
        assert await bench.operations() == []

    async def test_client_may_disconnect_during_a_cancellation(self, bench: Bench) -> None:
        async def clean_up_slowly(command: Mapping[str, Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await bench.clock.sleep(1)

        await bench.apply(thing("a"))
        bench.behaviors["a"] = clean_up_slowly
        task = await bench.start_call(bench.do_command("a", metadata={"opid": "one"}))
        await bench.call_robot("CancelOperation", cancel_request("one"))
        await bench.clock.settle()
        task.cancel()
        await bench.clock.advance(2)
        assert task.done()
        assert await bench.operations() == []
        await asyncio.gather(task, return_exceptions=True)


async def test_finished_calls_are_not_kept_in_memory(bench: Bench) -> None:
    seen: list[weakref.ref[Any]] = []

    async def remember_stream(command: Mapping[str, Any]) -> Mapping[str, Any]:
        operation = current_operation()
        assert operation is not None
        seen.append(weakref.ref(operation.stream))
        if command.get("fail"):
            raise InvalidRequest("no")
        return {}

    await bench.apply(thing("a"))
    bench.behaviors["a"] = remember_stream
    for fail in (False, True):
        await asyncio.gather(
            *(bench.do_command("a", {"fail": fail}) for _ in range(50)), return_exceptions=True
        )
    assert current_operation() is None
    await bench.clock.advance(2)
    gc.collect()
    assert len(seen) == 100
    assert [each for each in seen if each() is not None] == []


async def cancel_tasks(bench: Bench, *tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await bench.clock.settle()

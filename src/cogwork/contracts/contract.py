"""The contract of every resource, and base class of the contracts of all APIs.

A driver runs the contract of its API by subclassing it:

    class TestMyMotor(MotorContract):
        model = "acme:demo:motor"
        attributes = {"pin": 17}
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpclib import GRPCError
from grpclib.const import Cardinality, Status

from cogwork.contracts.harness import Harness, running_harness
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.resource.model import Model
from cogwork.wire.messages.resource_field import name_field

TIMEOUT = 5.0
"""Maximum seconds to wait for a reply, or for threads to end."""
SHORT_DURATION = 0.2
"""A duration in seconds that is long enough to measure and short enough to wait for."""

_OPTIONAL_METHODS = {"DoCommand", "GetStatus", "GetGeometries"}
"""Methods that most drivers do not implement."""
MAX_BLOCKING = 0.5
"""Maximum seconds for which a call may block the event loop."""
_BLOCKING_ATTEMPTS = 3
"""Number of calls, of which only one needs to stay below the limit: a busy computer may pause
during the others."""
_UNEXPLAINED_STATUSES = (Status.UNKNOWN, Status.INTERNAL)


class Contract:
    api: ClassVar[str]
    """API that the contract covers."""
    client: ClassVar[Any]
    """SDK client class of the API."""

    model: ClassVar[str]
    """Model under test: the short name of a built-in model, or `namespace:family:name`."""
    attributes: ClassVar[Mapping[str, Any]] = {}
    """Attributes of the resource under test."""
    other_resources: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Resources that the resource under test depends on, configured as in a file."""
    models: ClassVar[Sequence[Model]] = ()
    """Additional models that no installed package provides."""
    unsupported_methods: ClassVar[Collection[str]] = ()
    """Methods of the API that the model does not implement, such as `GetGeometries`."""

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        """A machine that runs `other_resources` and the resource under test."""
        async with running_harness(self.models) as made:
            await made.run(*self.other_resources, self.resource_config())
            made.assert_ready(self.full_name())
            yield made

    @pytest.fixture
    def resource(self, harness: Harness) -> Any:
        """Client of the resource under test."""
        return self.client("it", harness.channel)

    @classmethod
    def full_name(cls) -> ResourceName:
        """Name of the resource under test."""
        return ResourceName(Api.parse(cls.api), "it")

    @classmethod
    def resource_config(cls) -> dict[str, Any]:
        """Configuration of the resource under test, for `harness.run`."""
        return {"name": "it", "api": cls.api, "model": cls.model, "attributes": cls.attributes}

    async def test_can_be_called(self, harness: Harness, resource: Any) -> None:
        """A method without an implementation must fail with a message."""
        held = harness.machine.nodes[self.full_name()].usable
        assert held is not None
        if held.offer.in_place:
            assert hasattr(held.resource, "reconfigure"), "the model declares reconfigure"
        with allow_refusal("GetStatus"):
            assert isinstance(await resource.get_status(), Mapping)
        if "DoCommand" in _service_descriptor(self.api).methods_by_name:
            with allow_refusal("DoCommand"):
                assert isinstance(await resource.do_command({"anything": 1}), Mapping)

    async def test_every_method_answers_or_explains(self, harness: Harness) -> None:
        unimplemented = set()
        for method in _unary_methods(self.api):
            with allow_refusal(method.name) as outcome:
                await self._check_not_blocking(harness, method)
            if outcome.status is Status.UNIMPLEMENTED:
                unimplemented.add(method.name)
        for name in {each.name for each in _unary_methods(self.api)} - _OPTIONAL_METHODS:
            if name in unimplemented:
                assert name in self.unsupported_methods, (
                    f'{name} is not implemented; implement it or add it to "unsupported_methods"'
                )
            else:
                assert name not in self.unsupported_methods, (
                    f'{name} is in "unsupported_methods" but is implemented'
                )

    async def _check_not_blocking(self, harness: Harness, method: MethodDescriptor) -> None:
        """Fail if every attempt to call the method blocks the event loop. Otherwise raise the error
        of the call, if any."""
        blocked = 0.0
        for _ in range(_BLOCKING_ATTEMPTS):
            call = asyncio.ensure_future(_call(harness, method, "it"))
            blocked = await _measure_longest_block(call)
            if blocked < MAX_BLOCKING:
                await call
                return
        pytest.fail(f"{method.name} blocked the event loop for {blocked:.1f}s; run it in a thread")

    async def test_unknown_name_is_not_found(self, harness: Harness) -> None:
        with pytest.raises(GRPCError) as refused:
            await _call(
                harness, _service_descriptor(self.api).methods_by_name["GetStatus"], "missing"
            )
        assert refused.value.status is Status.NOT_FOUND

    async def test_can_be_removed_and_rebuilt(self, harness: Harness) -> None:
        await harness.run(*self.other_resources)
        assert self.full_name() not in harness.machine.nodes
        await harness.run(*self.other_resources, self.resource_config())
        harness.assert_ready(self.full_name())

    async def test_close_leaves_nothing_running(self, harness: Harness) -> None:
        await harness.run(*self.other_resources)
        before = _running_work()
        await harness.run(*self.other_resources, self.resource_config())
        await harness.run(*self.other_resources)
        until = time.monotonic() + TIMEOUT
        while (left := _running_work() - before) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert not left, f"still running after close: {', '.join(map(repr, left))}"


@dataclass
class CallOutcome:
    """The status of a call: OK, or the status of its error."""

    status: Status = Status.OK


class allow_refusal:  # noqa: N801 - reads as a word of the language
    """Allow the block to raise an error, which must be a gRPC status with a message."""

    def __init__(self, what: str = "it") -> None:
        self._what = what
        self._outcome = CallOutcome()

    def __enter__(self) -> CallOutcome:
        return self._outcome

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, NotImplementedError):
            # Do not check the message, which some SDK clients drop.
            self._outcome.status = Status.UNIMPLEMENTED
            return True
        if not isinstance(error, GRPCError):
            return False
        self._outcome.status = error.status
        words = f"{error.status.name}: {error.message}"
        assert error.status not in _UNEXPLAINED_STATUSES, f"{self._what} failed with {words}"
        assert " " in (error.message or ""), f"{self._what} failed without a message: {words}"
        return True


@contextlib.contextmanager
def assert_duration(seconds: float) -> Iterator[None]:
    """Check that the block takes at least half of `seconds`, and at most `TIMEOUT` longer than
    `seconds`."""
    since = time.monotonic()
    yield
    took = time.monotonic() - since
    assert took >= seconds / 2, (
        f"the call returned after {took:.2f}s instead of {seconds:.2f}s; "
        "return only when the action is complete"
    )
    assert took < seconds + TIMEOUT, f"the call took {took:.2f}s instead of {seconds:.2f}s"


async def _measure_longest_block(call: asyncio.Future[Any]) -> float:
    """Return the longest time for which the call blocked the event loop."""
    longest, last = 0.0, time.monotonic()
    while not call.done():
        await asyncio.wait({call}, timeout=0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    await asyncio.gather(call, return_exceptions=True)
    return longest


def _unary_methods(api: str) -> list[MethodDescriptor]:
    return [
        method
        for method in _service_descriptor(api).methods
        if not method.client_streaming and not method.server_streaming
    ]


def _service_descriptor(api: str) -> ServiceDescriptor:
    name = SERVICE_BY_API[Api.parse(api)]
    found: ServiceDescriptor = descriptor_pool.Default().FindServiceByName(name)  # type: ignore[no-untyped-call]
    return found


async def _call(harness: Harness, method: MethodDescriptor, name: str) -> Message | None:
    """Call a method with a request that only contains the name."""
    reply: Message | None
    async with harness.channel.request(
        f"/{method.containing_service.full_name}/{method.name}",
        Cardinality.UNARY_UNARY,
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        timeout=TIMEOUT,
    ) as stream:
        await stream.send_message(_build_request(method, name), end=True)
        reply = await stream.recv_message()
    return reply


def _build_request(method: MethodDescriptor, name: str) -> Message:
    request = GetMessageClass(method.input_type)()
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, name)
    return request


def _running_work() -> set[object]:
    """Return the running threads, and all tasks but the current one."""
    # Ignore the threads of the loop's own executor, which stay alive.
    threads = {each for each in threading.enumerate() if not each.name.startswith("asyncio_")}
    return {*threads, *asyncio.all_tasks()} - {asyncio.current_task()}

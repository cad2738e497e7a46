"""What every resource keeps to, whatever its API; the contract of each API stands on it.

A driver runs the contract of its API by naming itself:

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

from cogwork.contracts.bench import Bench, bench
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.model import Model
from cogwork.resource.services import public_services
from cogwork.wire.naming import name_field

PATIENCE = 5.0
"""Seconds that an answer may take, and that threads get to end."""
A_MOMENT = 0.2
"""Seconds of what is long enough to be measured, and that nobody minds waiting for."""

_OPTIONAL = {"DoCommand", "GetStatus", "GetGeometries"}
"""Methods that most have no use for."""
HELD_UP = 0.5
"""Seconds that no call may keep everybody else from having their turn."""
_TIMES = 3
"""How often a call has to do so to be blamed: a computer that is busy pauses now and then."""
_UNEXPLAINED = (Status.UNKNOWN, Status.INTERNAL)


class Contract:
    api: ClassVar[str]
    """Of which API it is the contract."""
    client: ClassVar[Any]
    """The SDK's class by which a client uses the API."""

    model: ClassVar[str]
    """The model to be judged: a bare word for a built-in one, or `namespace:family:name`."""
    attributes: ClassVar[Mapping[str, Any]] = {}
    """What it is configured with."""
    beside: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """The resources that it needs, configured as in a file."""
    models: ClassVar[Sequence[Model]] = ()
    """Models that no installed package offers."""
    lacks: ClassVar[Collection[str]] = ()
    """The methods of the API that it has no answer to, such as `GetGeometries`."""

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        async with bench(self.models) as made:
            await made.run(*self.beside, self.configured())
            made.assert_ready(self.full_name())
            yield made

    @pytest.fixture
    def it(self, bench: Bench) -> Any:
        """The resource, as a client has it."""
        return self.client("it", bench.channel)

    @classmethod
    def full_name(cls) -> ResourceName:
        return ResourceName(Api.parse(cls.api), "it")

    @classmethod
    def configured(cls) -> dict[str, Any]:
        return {"name": "it", "api": cls.api, "model": cls.model, "attributes": cls.attributes}

    async def test_it_can_be_called(self, bench: Bench, it: Any) -> None:
        """Whatever it has not: it says so in words."""
        held = bench.machine.nodes[self.full_name()].usable
        assert held is not None
        if held.offer.in_place:
            assert hasattr(held.resource, "reconfigure"), "the model says that it has reconfigure"
        with explained("GetStatus"):
            assert isinstance(await it.get_status(), Mapping)
        if "DoCommand" in _service(self.api).methods_by_name:
            with explained("DoCommand"):
                assert isinstance(await it.do_command({"anything": 1}), Mapping)

    async def test_every_method_answers_or_says_why_not(self, bench: Bench) -> None:
        unimplemented = set()
        for method in _unary(self.api):
            with explained(method.name) as told:
                await self._hold_up_nobody(bench, method)
            if told.status is Status.UNIMPLEMENTED:
                unimplemented.add(method.name)
        for name in {each.name for each in _unary(self.api)} - _OPTIONAL:
            if name in unimplemented:
                assert name in self.lacks, f'{name} is not answered: write it, or add it to "lacks"'
            else:
                assert name not in self.lacks, f'{name} is in "lacks", and is answered'

    async def _hold_up_nobody(self, bench: Bench, method: MethodDescriptor) -> None:
        """Raises what the call was refused with."""
        held_up = 0.0
        for _ in range(_TIMES):
            call = asyncio.ensure_future(_call(bench, method, "it"))
            held_up = await _longest_pause(call)
            if held_up < HELD_UP:
                await call
                return
        pytest.fail(f"{method.name} held up everybody for {held_up:.1f} s; put it in a thread")

    async def test_a_name_that_nobody_has_is_not_found(self, bench: Bench) -> None:
        with pytest.raises(GRPCError) as refused:
            await _call(bench, _service(self.api).methods_by_name["GetStatus"], "nobody")
        assert refused.value.status is Status.NOT_FOUND

    async def test_it_can_be_removed_and_built_again(self, bench: Bench) -> None:
        await bench.run(*self.beside)
        assert self.full_name() not in bench.machine.nodes
        await bench.run(*self.beside, self.configured())
        bench.assert_ready(self.full_name())

    async def test_closed_it_leaves_nothing_behind(self, bench: Bench) -> None:
        await bench.run(*self.beside)
        before = _at_work()
        await bench.run(*self.beside, self.configured())
        await bench.run(*self.beside)
        until = time.monotonic() + PATIENCE
        while (left := _at_work() - before) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert not left, f"still there: {', '.join(map(repr, left))}"


@dataclass
class Told:
    """What a client was told, where it was refused."""

    status: Status = Status.OK


class explained:  # noqa: N801 - reads as a word of the language
    """What is asked may be refused, with a status and words that say why."""

    def __init__(self, what: str = "it") -> None:
        self._what = what
        self._told = Told()

    def __enter__(self) -> Told:
        return self._told

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, NotImplementedError):
            # Some of the SDK's clients keep the words to themselves.
            self._told.status = Status.UNIMPLEMENTED
            return True
        if not isinstance(error, GRPCError):
            return False
        self._told.status = error.status
        words = f"{error.status.name}: {error.message}"
        assert error.status not in _UNEXPLAINED, f"{self._what} was refused with {words}"
        assert " " in (error.message or ""), f"{self._what} was refused without a word: {words}"
        return True


@contextlib.contextmanager
def lasting(seconds: float) -> Iterator[None]:
    """What is waited for meanwhile takes about that long: half of it at least."""
    since = time.monotonic()
    yield
    took = time.monotonic() - since
    assert took >= seconds / 2, (
        f"it was over after {took:.2f} s, and takes {seconds:.2f} s: "
        "answer when what was asked for is done"
    )
    assert took < seconds + PATIENCE, f"it took {took:.2f} s, and not {seconds:.2f} s"


async def _longest_pause(call: asyncio.Future[Any]) -> float:
    """How long nobody else had a turn while the call went on, however it ended."""
    longest, last = 0.0, time.monotonic()
    while not call.done():
        await asyncio.wait({call}, timeout=0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    await asyncio.gather(call, return_exceptions=True)
    return longest


def _unary(api: str) -> list[MethodDescriptor]:
    return [
        method
        for method in _service(api).methods
        if not method.client_streaming and not method.server_streaming
    ]


def _service(api: str) -> ServiceDescriptor:
    (name,) = (each.service for each in public_services() if str(each.api) == api)
    found: ServiceDescriptor = descriptor_pool.Default().FindServiceByName(name)  # type: ignore[no-untyped-call]
    return found


async def _call(bench: Bench, method: MethodDescriptor, name: str) -> Message | None:
    """With everything but the name left out."""
    reply: Message | None
    async with bench.channel.request(
        f"/{method.containing_service.full_name}/{method.name}",
        Cardinality.UNARY_UNARY,
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        timeout=PATIENCE,
    ) as stream:
        await stream.send_message(_request(method, name), end=True)
        reply = await stream.recv_message()
    return reply


def _request(method: MethodDescriptor, name: str) -> Message:
    request = GetMessageClass(method.input_type)()
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, name)
    return request


def _at_work() -> set[object]:
    """The threads, and the tasks of others."""
    # Those that the loop itself lends out stay with it.
    threads = {each for each in threading.enumerate() if not each.name.startswith("asyncio_")}
    return {*threads, *asyncio.all_tasks()} - {asyncio.current_task()}

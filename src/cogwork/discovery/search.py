"""Looks for machines on the local network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from cogwork.core.token_bucket import Rate, TokenBuckets
from cogwork.discovery.announcement import SERVICE
from cogwork.discovery.dns_message import (
    MAX_SIZE,
    InvalidMessage,
    Message,
    Question,
    Record,
    RecordType,
    Service,
    decode,
    encode_query,
    split_name,
)
from cogwork.discovery.interfaces import Endpoint, list_interfaces, open_endpoints

_ASK_INTERVAL = 0.3
_RESPONSES = Rate.every(0.005, burst=500)
"""Responses that are decoded. The server searches on its event loop, too."""


@dataclass(frozen=True, slots=True, order=True)
class FoundMachine:
    name: str
    address: str
    port: int
    host: str
    transports: tuple[str, ...]


OnAnswer = Callable[[Iterable[FoundMachine]], None]


async def find_machines(seconds: float) -> list[FoundMachine]:
    """Ask on every interface for so many seconds, and return the machines that answered."""
    found: set[FoundMachine] = set()
    await _ask(found.update, seconds)
    return sorted(_without_spellings(found))


async def find_machine(name: str, seconds: float) -> FoundMachine | None:
    """Return the first machine that answers to a name; None if none does in so many seconds.

    The name is that of the machine, or that of its computer, such as `board.local`.
    """
    answered: asyncio.Future[FoundMachine] = asyncio.get_running_loop().create_future()

    def compare(machines: Iterable[FoundMachine]) -> None:
        for machine in machines:
            if name.lower() in (machine.name.lower(), machine.host.lower()) and not answered.done():
                answered.set_result(machine)

    asking = asyncio.ensure_future(_ask(compare, seconds))
    try:
        await asyncio.wait((asking, answered), return_when=asyncio.FIRST_COMPLETED)
        return answered.result() if answered.done() else None
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _ask(on_answer: OnAnswer, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    budget = TokenBuckets(loop.time, _RESPONSES, 1)
    with contextlib.ExitStack() as stack:
        endpoints = []
        for interface in list_interfaces():
            with contextlib.suppress(OSError):
                endpoints += open_endpoints(interface, 0)
        for endpoint in endpoints:
            stack.callback(endpoint.socket.close)
            loop.add_reader(endpoint.socket.fileno(), _read, endpoint, on_answer, budget)
            stack.callback(loop.remove_reader, endpoint.socket.fileno())
        query = encode_query([Question(SERVICE, RecordType.PTR, wants_unicast=True)])
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            for endpoint in endpoints:
                with contextlib.suppress(OSError):
                    endpoint.socket.sendto(query, endpoint.group)
            await asyncio.sleep(min(left, _ASK_INTERVAL))


def _read(endpoint: Endpoint, on_answer: OnAnswer, budget: TokenBuckets) -> None:
    try:
        data, _ = endpoint.socket.recvfrom(MAX_SIZE)
        if budget.try_take(None):
            on_answer(list(read_machines(decode(data))))
    except (OSError, InvalidMessage):
        return


def read_machines(message: Message) -> Iterator[FoundMachine]:
    """Yield the machines that a response lists."""
    by_name: dict[str, list[Record]] = {}
    for record in message.records:
        by_name.setdefault(record.name, []).append(record)
    listed = [each.value for each in by_name.get(SERVICE, ()) if each.type is RecordType.PTR]
    for instance in dict.fromkeys(map(str, filter(None, listed))):
        values = [each.value for each in by_name.get(instance, ())]
        service = next((each for each in values if isinstance(each, Service)), None)
        if service is None:
            continue
        texts = next((each for each in values if _is_texts(each)), ())
        for record in by_name.get(service.host, ()):
            if record.type in (RecordType.A, RecordType.AAAA):
                label = split_name(instance)[0]
                yield FoundMachine(label, str(record.value), service.port, service.host, texts)


def _is_texts(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and not isinstance(value, Service)


def _without_spellings(found: Iterable[FoundMachine]) -> list[FoundMachine]:
    """Leave out the spellings of a name with dashes instead of dots."""
    machines = list(found)
    dotted = {
        (each.name.replace(".", "-"), each.address, each.port)
        for each in machines
        if "." in each.name
    }
    return [each for each in machines if (each.name, each.address, each.port) not in dotted]

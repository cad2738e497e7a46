"""The search for machines on the local network."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeGuard

from cogwork.core.limits.token_bucket import Rate, TokenBuckets
from cogwork.discovery.announcement import PROCESS_ID_KEY, SERVICE
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
from cogwork.discovery.sightings import FoundMachine, Sighting, ThisComputer, merge_sightings

_SERVICE_LABELS = split_name(SERVICE)
_ASK_INTERVAL = 0.3
_RESPONSES = Rate.every(0.005, burst=500)
"""Rate limit of decoded responses, because the server searches on its event loop, too."""


OnAnswer = Callable[[Sequence[Sighting]], None]


async def find_machines(seconds: float) -> list[FoundMachine]:
    """Query every interface for the given seconds, and return the machines that answered."""
    seen: set[Sighting] = set()
    await _ask(seen.update, seconds)
    return merge_sightings(seen, _describe_computer())


def _describe_computer() -> ThisComputer:
    interfaces = sorted(list_interfaces(), key=lambda each: each.number)
    addresses = [address for each in interfaces for address in each.addresses]
    return ThisComputer(socket.gethostname().partition(".")[0], tuple(addresses))


async def find_machine(name: str, seconds: float) -> FoundMachine | None:
    """Return the first machine that answers to a name, or None if none answers in time.

    `name` is the name of the machine or of its computer, such as `board.local`.
    """
    answered: asyncio.Future[FoundMachine] = asyncio.get_running_loop().create_future()

    def compare(seen: Sequence[Sighting]) -> None:
        for machine in (each.machine for each in seen):
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
        endpoints, interfaces = [], list_interfaces()
        own = frozenset(address for each in interfaces for address in each.addresses)
        for interface in interfaces:
            with contextlib.suppress(OSError):
                endpoints += open_endpoints(interface, 0)
        for endpoint in endpoints:
            stack.callback(endpoint.socket.close)
            loop.add_reader(endpoint.socket.fileno(), _read, endpoint, own, on_answer, budget)
            stack.callback(loop.remove_reader, endpoint.socket.fileno())
        query = encode_query([Question(SERVICE, RecordType.PTR, wants_unicast=True)])
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            for endpoint in endpoints:
                with contextlib.suppress(OSError):
                    endpoint.socket.sendto(query, endpoint.group)
            await asyncio.sleep(min(left, _ASK_INTERVAL))


def _read(
    endpoint: Endpoint, own: Collection[str], on_answer: OnAnswer, budget: TokenBuckets
) -> None:
    try:
        data, sender = endpoint.socket.recvfrom(MAX_SIZE)
        if budget.try_take(None):
            address = sender[0].partition("%")[0]
            on_answer(read_sightings(decode(data), address, own, endpoint.interface))
    except (OSError, InvalidMessage):
        return


def read_sightings(
    message: Message, sender: str, own: Collection[str], interface: int
) -> list[Sighting]:
    """Return the machines in a response whose addresses can be reached from this computer.

    Some servers announce their loopback address to the whole network. `own` are the addresses of
    this computer, and `interface` is the index of its interface that received the response.
    """
    is_here = sender in own
    return [
        Sighting(sender, machine, process_id, interface)
        for machine, process_id in read_machines(message)
        if is_here or not ipaddress.ip_address(machine.address).is_loopback
    ]


def read_machines(message: Message) -> Iterator[tuple[FoundMachine, str]]:
    """Yield each machine in a response, once for each address, with its `process_id`."""
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
        process_id = next((each for each in texts if each.startswith(PROCESS_ID_KEY)), "")
        transports = tuple(each for each in texts if each != process_id)
        for record in by_name.get(service.host, ()):
            if record.type in (RecordType.A, RecordType.AAAA):
                address = str(record.value)
                name = _read_label(instance)
                machine = FoundMachine(name, address, service.port, service.host, transports)
                yield machine, process_id


def _is_texts(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and not isinstance(value, Service)


def _read_label(instance: str) -> str:
    """Return the name of a machine, in which some servers do not escape dots."""
    labels = split_name(instance)
    return ".".join(labels[: -len(_SERVICE_LABELS)]) or labels[0]

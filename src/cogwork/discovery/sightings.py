"""Merging of answers from the same machine on the local network. No I/O.

A machine may answer for each of its names, in two spellings, on each interface and with IPv4 and
IPv6, and may list addresses that cannot be reached from this computer. Answers are not
authenticated: a program on the network can copy names and identifiers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_HERE: Final = "here"
"""A placeholder for all addresses of this computer."""


@dataclass(frozen=True, slots=True, order=True)
class FoundMachine:
    name: str
    address: str
    port: int
    host: str
    transports: tuple[str, ...]

    @property
    def plain_name(self) -> str:
        """The name with dashes instead of dots: many servers announce both spellings."""
        return self.name.replace(".", "-").lower()

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback


class Sighting(NamedTuple):
    """One address of a machine, from one sender."""

    sender: str
    """The address that sent the answer."""
    machine: FoundMachine
    process_id: str = ""
    """The identifier of the server process; empty for servers that announce none."""
    interface: int = 0
    """The index of this computer's interface that received the answer."""


class ThisComputer(NamedTuple):
    name: str
    addresses: tuple[str, ...]
    """The addresses of all interfaces, in the order of the interfaces."""

    def locate(self, address: str) -> str:
        return _HERE if address in self.addresses else address


def merge_sightings(seen: Iterable[Sighting], computer: ThisComputer) -> list[FoundMachine]:
    """Return each machine once, with its best name and address."""
    sightings = sorted(seen)
    senders = {each.sender for each in sightings}
    groups = [
        part
        for group in _group(sightings, lambda each: _identify(each, senders, computer))
        for part in _split_rivals(group, computer)
    ]
    public = [each for each in groups if not _is_local(each)]
    names = {name for each in public if _is_here(each, computer) for name in _names(each)}
    # All servers on this computer may announce the computer's name, so that name does not identify
    # a machine.
    names.discard(computer.name.replace(".", "-").lower())
    kept = public + [each for each in groups if _is_local(each) and not names & _names(each)]
    return sorted({_choose(each, senders, computer) for each in kept})


def _identify(
    sighting: Sighting, senders: Collection[str], computer: ThisComputer
) -> Iterator[Hashable]:
    """Yield the keys of a sighting; sightings with a common key belong to the same machine."""
    machine, sender = sighting.machine, computer.locate(sighting.sender)
    yield machine.port, machine.plain_name, sender
    if sighting.process_id:
        # The process answers on each of its networks with the addresses of that network only.
        yield machine.port, sighting.process_id
    # A machine lists the same addresses under all its names, with IPv4 and IPv6. Another machine
    # may list one of these addresses, too, such as the address of a container bridge. So an address
    # identifies a machine only together with the sender, or if the address has sent answers.
    yield machine.port, sender, machine.address
    other = computer.locate(machine.address)
    if machine.address in senders and (other != _HERE or sender == _HERE):
        yield machine.port, machine.plain_name, other


def _group(
    sightings: Iterable[Sighting], identify: Callable[[Sighting], Iterable[Hashable]]
) -> Iterable[list[Sighting]]:
    """Return groups of sightings that are connected by common keys (union-find)."""
    parents: dict[Hashable, Hashable] = {}

    def find_root(key: Hashable) -> Hashable:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = key = parents[parent]
        return key

    first_keys: list[tuple[Hashable, Sighting]] = []
    for sighting in sightings:
        first, *others = identify(sighting)
        for other in others:
            parents[find_root(other)] = find_root(first)
        first_keys.append((first, sighting))
    groups: dict[Hashable, list[Sighting]] = {}
    for key, sighting in first_keys:
        groups.setdefault(find_root(key), []).append(sighting)
    return groups.values()


def _split_rivals(
    group: Sequence[Sighting], computer: ThisComputer
) -> Iterable[Sequence[Sighting]]:
    """Split a group by sender if two senders on one network do not list each other's address.

    A machine has one IPv4 address and one IPv6 address on a network, or lists all of them. So one
    of these senders may have copied the identity of the other, and must not hide it.
    """
    networks: dict[tuple[int, bool], set[str]] = {}
    listed: dict[str, set[str]] = {}
    by_sender: dict[str, list[Sighting]] = {}
    for each in group:
        sender = computer.locate(each.sender)
        networks.setdefault((each.interface, ":" in each.sender), set()).add(sender)
        listed.setdefault(sender, {sender}).add(computer.locate(each.machine.address))
        by_sender.setdefault(sender, []).append(each)
    has_rivals = any(
        not senders <= listed[sender] for senders in networks.values() for sender in senders
    )
    return by_sender.values() if has_rivals else [group]


def _is_local(group: Sequence[Sighting]) -> bool:
    """Return whether the machine can only be reached from its own computer."""
    return all(each.machine.is_loopback for each in group)


def _is_here(group: Sequence[Sighting], computer: ThisComputer) -> bool:
    return any(computer.locate(each.sender) == _HERE for each in group)


def _names(group: Sequence[Sighting]) -> set[str]:
    return {each.machine.plain_name for each in group}


def _choose(
    group: Sequence[Sighting], senders: Collection[str], computer: ThisComputer
) -> FoundMachine:
    machines = [each.machine for each in group]
    name = min((each.name for each in machines), key=_rank_name)
    address = min(
        (each.address for each in machines),
        key=lambda each: _rank_address(each, senders, computer),
    )
    host = min(each.host for each in machines if each.address == address)
    transports = dict.fromkeys(text for each in machines for text in each.transports)
    return FoundMachine(name, address, machines[0].port, host, tuple(transports))


def _rank_name(name: str) -> tuple[bool, int, str]:
    """Return a sort key: names with dots first, then shorter names, because longer ones contain
    `local`."""
    return "." not in name, len(name), name


def _rank_address(
    address: str, senders: Collection[str], computer: ThisComputer
) -> tuple[bool, bool, bool, int, str]:
    own = computer.addresses
    return (
        ipaddress.ip_address(address).is_loopback,
        address not in senders,
        ":" in address,
        own.index(address) if address in own else 0,
        address,
    )

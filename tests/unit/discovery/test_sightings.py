"""Each machine is found once, however it announces itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from cogwork.discovery.announcement import SERVICE, Announcement
from cogwork.discovery.dns_message import Record, RecordType, Service, decode, encode_response
from cogwork.discovery.search import read_sightings
from cogwork.discovery.sightings import FoundMachine, Sighting, ThisComputer, merge_sightings

HERE = ThisComputer("laptop", ("127.0.0.1", "::1", "192.0.2.1", "fe80::1", "172.17.0.1"))
FQDN, LOCAL_FQDN = "belt-main.abc.example.com", "belt-main.abc.local.example.com"
BOTH = ("grpc", "webrtc")
ADDRESSES = ("192.0.2.7", "fe80::7")
BRIDGES = ("172.17.0.1", "fe80::77")
"""What containers use is on many computers."""


def packet(name: str, host: str, port: int, addresses: Iterable[str]) -> bytes:
    """Encode a response as servers do that are written in Go, without escaping dots."""
    instance, target = f"{name}.{SERVICE}", f"{host}.local"
    return encode_response(
        [
            Record(SERVICE, RecordType.PTR, instance),
            Record(instance, RecordType.SRV, Service(port, target)),
            Record(instance, RecordType.TXT, BOTH),
            *(
                Record(target, RecordType.AAAA if ":" in each else RecordType.A, each)
                for each in addresses
            ),
        ]
    )


def announce_as_go(
    senders: Sequence[str], port: int, names: Iterable[str] = (FQDN, LOCAL_FQDN)
) -> Iterator[Sighting]:
    """Each name has two spellings, each once at the host and once at itself, to each asker."""
    for sender in senders:
        for name in names:
            for label in (name, name.replace(".", "-")):
                for data in (
                    packet(label, "vm", port, senders),
                    packet(label, label, port, (*senders, *BRIDGES)),
                    packet(label, "vm", 39211, ["127.0.0.1"]),
                ):
                    yield from read_sightings(decode(data), sender, HERE.addresses, 1)


def announce(
    sender: str, announced: Announcement, addresses: Sequence[str], interface: int = 1
) -> Iterator[Sighting]:
    for records in announced.listings(addresses):
        data = encode_response(records)
        yield from read_sightings(decode(data), sender, HERE.addresses, interface)


def test_machine_of_another_make_is_found_once_with_its_public_port() -> None:
    found = merge_sightings(announce_as_go(ADDRESSES, 8080), HERE)
    assert found == [FoundMachine(FQDN, "192.0.2.7", 8080, "belt-main-abc-example-com.local", BOTH)]


def test_its_local_port_is_left_out_on_its_own_computer() -> None:
    seen = announce_as_go(("192.0.2.1", "fe80::1"), 8080)
    assert [(each.address, each.port) for each in merge_sightings(seen, HERE)] == [
        ("192.0.2.1", 8080)
    ]


def test_machines_that_share_the_address_of_a_bridge_are_told_apart() -> None:
    other = announce_as_go(("192.0.2.8",), 8080, ["saw-main.abc.example.com"])
    same_name = announce_as_go(("192.0.2.9",), 8080)
    seen = [*announce_as_go(ADDRESSES, 8080), *other, *same_name]
    assert [(each.name, each.address) for each in merge_sightings(seen, HERE)] == [
        (FQDN, "192.0.2.7"),
        (FQDN, "192.0.2.9"),
        ("saw-main.abc.example.com", "192.0.2.8"),
    ]


def test_machine_of_ours_is_found_once_with_all_of_its_spellings() -> None:
    belt = Announcement(("belt.factory",), 8080, "vm")
    seen = [*announce("192.0.2.7", belt, ADDRESSES), *announce("fe80::7", belt, ADDRESSES)]
    assert merge_sightings(seen, HERE) == [
        FoundMachine("belt.factory", "192.0.2.7", 8080, "vm.local", BOTH)
    ]


def test_machine_is_found_once_although_it_answers_on_two_networks() -> None:
    """Each network learns only the addresses on it, and the machine has several names."""
    belt = Announcement((FQDN, LOCAL_FQDN), 8080, "vm", process_id="5d3c")
    seen = [
        *announce("192.0.2.7", belt, ADDRESSES),
        *announce("fe80::7", belt, ADDRESSES),
        *announce("198.51.100.7", belt, ["198.51.100.7"], interface=2),
    ]
    assert merge_sightings(seen, HERE) == [FoundMachine(FQDN, "192.0.2.7", 8080, "vm.local", BOTH)]


def test_copies_of_a_machine_on_two_networks_are_told_apart() -> None:
    """A copied disk has the same names, but it runs another process."""
    seen = [
        *announce("192.0.2.7", Announcement((FQDN,), 8080, "vm", process_id="5d3c"), ADDRESSES),
        *announce(
            "198.51.100.7",
            Announcement((FQDN,), 8080, "vm", process_id="77aa"),
            ["198.51.100.7"],
            interface=2,
        ),
    ]
    assert [each.address for each in merge_sightings(seen, HERE)] == ["192.0.2.7", "198.51.100.7"]


@pytest.mark.parametrize("listed", [["192.0.2.66"], ["192.0.2.66", *ADDRESSES]])
@pytest.mark.parametrize("process_id", ["5d3c", ""])
def test_copied_identity_does_not_hide_the_machine(listed: list[str], process_id: str) -> None:
    """An impostor on the same network copies the names, the process ID and the addresses."""
    belt = Announcement((FQDN,), 8080, "vm", process_id=process_id)
    seen = [
        *announce("192.0.2.7", belt, ADDRESSES),
        *announce("fe80::7", belt, ADDRESSES),
        *announce("192.0.2.66", belt, listed),
        *announce("fe80::66", belt, [*listed, "fe80::66"]),
    ]
    assert {"192.0.2.7", "192.0.2.66"} <= {each.address for each in merge_sightings(seen, HERE)}


def test_machine_with_two_addresses_on_one_network_is_found_once() -> None:
    belt = Announcement((FQDN,), 8080, "vm", process_id="5d3c")
    both = ("192.0.2.7", "192.0.2.8")
    seen = [*announce(both[0], belt, both), *announce(both[1], belt, both)]
    assert [each.address for each in merge_sightings(seen, HERE)] == ["192.0.2.7"]


def test_machines_of_this_computer_are_told_apart() -> None:
    """Without names of their own, they have that of the computer."""
    public, local = (Announcement(("laptop",), port, "laptop") for port in (8080, 8081))
    seen = [
        *announce("127.0.0.1", public, ["127.0.0.1"]),
        *announce("192.0.2.1", public, ["192.0.2.1"]),
        *announce("127.0.0.1", local, ["127.0.0.1"]),
    ]
    assert [(each.address, each.port) for each in merge_sightings(seen, HERE)] == [
        ("127.0.0.1", 8081),
        ("192.0.2.1", 8080),
    ]


def test_loopback_of_other_computers_is_not_ours() -> None:
    data = packet(FQDN, "vm", 8080, ["127.0.0.1"])
    assert read_sightings(decode(data), "192.0.2.7", HERE.addresses, 1) == []
    assert len(read_sightings(decode(data), "192.0.2.1", HERE.addresses, 1)) == 1


def test_many_sightings_are_merged_quickly() -> None:
    seen = [
        Sighting("192.0.2.7", FoundMachine(f"m{number}", "192.0.2.7", 8080, "vm.local", ()))
        for number in range(50_000)
    ]
    assert len(merge_sightings(seen, HERE)) == 1

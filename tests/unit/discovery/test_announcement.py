from __future__ import annotations

from cogwork.discovery.announcement import SERVICE, Announcement
from cogwork.discovery.dns_message import (
    Message,
    Question,
    Record,
    RecordType,
    Service,
    encode_query,
)
from cogwork.discovery.search import read_machines

BELT = Announcement(("belt.factory",), 8080, "vm")
ADDRESSES = ("192.0.2.7", "2001:db8::7")


def test_each_spelling_has_a_complete_packet_dashes_first() -> None:
    packets = BELT.answer([Question(SERVICE, RecordType.PTR)], ADDRESSES)
    labels = ["belt-factory", "belt\\.factory"]
    assert [answers[0].value for answers, _ in packets] == [
        f"{label}._rpc._tcp.local" for label in labels
    ]
    for answers, additional in packets:
        kinds = [record.type.name for record in (*answers, *additional)]
        assert kinds == ["PTR", "SRV", "TXT", "A", "AAAA"]


def test_other_questions_are_answered_or_left_alone() -> None:
    def ask(name: str, kind: RecordType) -> list[str]:
        packets = BELT.answer([Question(name, kind)], ADDRESSES)
        return [record.type.name for answers, _ in packets for record in answers]

    assert ask("vm.local", RecordType.A) == ["A", "A"]
    assert ask("belt-factory._rpc._tcp.local", RecordType.ANY) == ["SRV", "TXT"]
    assert ask("_services._dns-sd._udp.local", RecordType.PTR) == ["PTR"]
    assert ask("_http._tcp.local", RecordType.PTR) == []
    assert ask("other.local", RecordType.A) == []


def test_what_is_answered_is_recognized_before_it_is_decoded() -> None:
    for name in (
        SERVICE,
        "Belt-Factory._rpc._tcp.local",
        "VM.local",
        "_services._dns-sd._udp.local",
    ):
        assert BELT.concerns(encode_query([Question(name, RecordType.ANY)]))
    assert not BELT.concerns(encode_query([Question("_http._tcp.local", RecordType.PTR)]))


def test_crafted_responses_list_few_machines() -> None:
    """Every instance is named often, and so are its service and its addresses."""
    instance, host = f"a.{SERVICE}", "vm.local"
    records = [
        Record(SERVICE, RecordType.PTR, instance),
        Record(instance, RecordType.SRV, Service(80, host)),
        Record(host, RecordType.A, "192.0.2.7"),
    ] * 20
    assert len(list(read_machines(Message(0, True, [], records)))) <= len(records)
    nameless = [Record(SERVICE, RecordType.PTR, ""), Record("", RecordType.SRV, Service(80, host))]
    assert list(read_machines(Message(0, True, [], [*nameless, records[2]]))) == []

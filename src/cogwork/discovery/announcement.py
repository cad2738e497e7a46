"""The DNS-SD records that announce a machine on the local network, and answers to queries. No
I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cogwork.discovery.dns_message import Question, Record, RecordType, Service, join_name

SERVICE = "_rpc._tcp.local"
_META = "_services._dns-sd._udp.local"
"""The name that DNS-SD browsers query to list the types of services."""
_SERVICE_LABEL, _META_LABEL = b"_rpc", b"_dns-sd"
_DOMAIN = "local"
PROCESS_ID_KEY = "id="
"""Prefix of the text that identifies the server process, whatever the interface it answers on."""


@dataclass(frozen=True, slots=True)
class Announcement:
    names: tuple[str, ...]
    """The names of the machine."""
    port: int
    host: str
    """The host name of the computer, without a domain."""
    transports: tuple[str, ...] = ("grpc", "webrtc")
    process_id: str = ""
    """A random identifier of the server process, so that its answers are counted as one machine."""

    @property
    def instances(self) -> list[str]:
        """The DNS-SD instance names of the machine.

        Clients query a name with dashes instead of dots first, and then the name as they dial it.
        """
        labels = [label for name in self.names for label in (name.replace(".", "-"), name)]
        return list(dict.fromkeys(labels))

    def listings(self, addresses: Sequence[str]) -> list[list[Record]]:
        """Return the records of each instance, with these addresses of the computer.

        The records of each instance are complete and are sent in a separate packet: some clients
        read only the first instance of a packet, and do not combine packets.
        """
        return [self._records(label, addresses) for label in self.instances]

    def answer(
        self, questions: Sequence[Question], addresses: Sequence[str]
    ) -> list[tuple[list[Record], list[Record]]]:
        """Return the answers and additional records of each packet of the response."""
        packets = []
        for records in self.listings(addresses):
            answers = [
                record
                for record in records
                if any(_matches(question, record) for question in questions)
            ]
            if answers:
                packets.append((answers, [each for each in records if each not in answers]))
        if any(question.name == _META for question in questions):
            packets.append(([Record(_META, RecordType.PTR, SERVICE)], []))
        return packets

    def concerns(self, data: bytes) -> bool:
        """Return whether an undecoded query may ask for this machine.

        Search the bytes for labels, which are readable even if names are compressed.
        """
        lowered = data.lower()
        return any(
            marker in lowered
            for marker in (_SERVICE_LABEL, _META_LABEL, self.host.lower().encode())
        )

    @property
    def _texts(self) -> tuple[str, ...]:
        identifier = (f"{PROCESS_ID_KEY}{self.process_id}",) if self.process_id else ()
        return (*self.transports, *identifier)

    def _records(self, label: str, addresses: Sequence[str]) -> list[Record]:
        host = join_name([self.host, _DOMAIN])
        instance = join_name([label, *SERVICE.split(".")])
        return [
            Record(SERVICE, RecordType.PTR, instance),
            Record(instance, RecordType.SRV, Service(self.port, host)),
            Record(instance, RecordType.TXT, self._texts),
            *_address_records(host, addresses),
        ]


def goodbye(records: Sequence[Record]) -> list[Record]:
    """Return goodbye records, which remove the given records from the caches of clients."""
    return [replace(record, ttl=0) for record in records]


def _matches(question: Question, record: Record) -> bool:
    return question.name == record.name and question.type in (record.type, RecordType.ANY)


def _address_records(host: str, addresses: Sequence[str]) -> list[Record]:
    return [
        Record(host, RecordType.AAAA if ":" in address else RecordType.A, address)
        for address in addresses
    ]

"""The shared context of the cloud's operations and services."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.auth.certificate_authority import Authority
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.cloud.identity.part_watch import PartWatch
from cogwork.cloud.identity.presence import Presence
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.keys.machine_tokens import MachineTokenIssuer
from cogwork.cloud.operations.operation import Call
from cogwork.cloud.storage.blobs import Blobs
from cogwork.cloud.storage.bus import Bus
from cogwork.cloud.storage.log_store import LogStore
from cogwork.cloud.storage.records import Records
from cogwork.core.clock import Clock


@dataclass(frozen=True, slots=True)
class CloudContext:
    records: Records
    logs: LogStore
    bus: Bus
    blobs: Blobs
    keys: CloudKeys
    keyring: Keyring
    name: PublicName
    clock: Clock
    presence: Presence
    watch: PartWatch
    machine_tokens: MachineTokenIssuer
    actors: ActorCache
    calls: OpenCalls

    @property
    def authority(self) -> Authority:
        """The authority that signs the certificates of machines."""
        return self.keys.authority

    def make_call(self, actor: Actor) -> Call:
        return Call(actor, self.now(), self.keyring, self.name, self.presence, self.watch)

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        return int(self.clock.time() * 1e6)

"""What every service of the cloud uses."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.auth.certificate_authority import Authority
from cogwork.cloud.health import Health
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.cloud.identity.cloud_keys import CloudKeys
from cogwork.cloud.identity.keyring import Keyring
from cogwork.cloud.identity.machine_tokens import MachineTokenIssuer
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.cloud.log_searches import LogSearches
from cogwork.cloud.machine.log_losses import LogLosses
from cogwork.cloud.machine.log_quota import LogQuota
from cogwork.cloud.machine.part_watch import PartWatch
from cogwork.cloud.machine.presence import Presence
from cogwork.cloud.operation import Call
from cogwork.cloud.public_name import PublicName
from cogwork.cloud.signaling.relay_servers import RelayServers
from cogwork.cloud.storage.blobs import Blobs
from cogwork.cloud.storage.bus import Bus
from cogwork.cloud.storage.disk_space import DiskSpace
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
    relays: RelayServers
    health: Health
    disk: DiskSpace
    log_quota: LogQuota
    log_losses: LogLosses
    log_searches: LogSearches

    @property
    def authority(self) -> Authority:
        """Signs the certificates of machines."""
        return self.keys.authority

    def make_call(self, actor: Actor) -> Call:
        return Call(actor, self.now(), self.keyring, self.name, self.presence, self.watch)

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        return int(self.clock.time() * 1e6)

"""A cloud for tests, and its clients."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
from tests.support.cloud.created_cloud import copy_new_cloud

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.control_plane.health import CloudHealth
from cogwork.cloud.control_plane.open_cloud import open_cloud
from cogwork.cloud.fleet.log_losses import LogLosses
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.machine.log_quota import LogRates
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.signaling.relay_servers import NO_RELAYS, RelayServers
from cogwork.core.clock import Clock, SystemClock
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.app.app_client import AppClient  # noqa: E402
from viam.app.viam_client import ViamClient  # noqa: E402
from viam.rpc.dial import DialOptions  # noqa: E402

DOMAIN = "fleet.test"


@dataclass
class Cloud:
    address: str
    key_id: str
    key: str
    _plane: ControlPlane | None = None
    _server: grpc.aio.Server | None = None

    @property
    def context(self) -> CloudContext:
        """The stores of a cloud in this process."""
        return self._require_plane().context

    @property
    def health(self) -> CloudHealth:
        return self._require_plane().health

    @property
    def log_losses(self) -> LogLosses:
        return self._require_plane().intake.losses

    def list_methods(self) -> list[str]:
        """Return the paths of all methods of a cloud in this process."""
        table = self._require_plane().table
        return [method.path for each in table.services() for method in table.methods(each)]

    async def connect(self, key_id: str = "", key: str = "") -> ViamClient:
        options = DialOptions.with_api_key(key or self.key, key_id or self.key_id)
        options.insecure = True
        return await ViamClient.create_from_dial_options(options, self.address)

    async def stop(self) -> None:
        """Stop serving."""
        assert self._server is not None
        await self._server.stop(None)
        self._server = None  # its thread ends with the last reference

    async def start(self) -> None:
        """Serve again, at the same address."""
        self._server = grpc_server(self._require_plane().table)
        self._server.add_insecure_port(self.address)
        await self._server.start()

    def _require_plane(self) -> ControlPlane:
        assert self._plane is not None
        return self._plane


@contextlib.asynccontextmanager
async def run_cloud(
    directory: Path,
    clock: Clock | None = None,
    *,
    relays: RelayServers = NO_RELAYS,
    log_rates: LogRates | None = None,
) -> AsyncIterator[Cloud]:
    """A cloud in this process, with its first owner."""
    name = PublicName(DOMAIN, f"{DOMAIN}:443", is_encrypted=True)
    clock = clock or SystemClock()
    new = copy_new_cloud(directory, DOMAIN, "Acme", clock)
    async with open_cloud(CloudDirectory(directory), name, clock, relays, log_rates) as plane:
        server: grpc.aio.Server = grpc_server(plane.table)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        cloud = Cloud(f"127.0.0.1:{port}", new.key_id, new.key, plane, server)
        try:
            yield cloud
        finally:
            await cloud.stop()


async def make_part(client: AppClient) -> str:
    """Return the ID of the main part of a new machine."""
    (organization,) = await client.list_organizations()
    location = await client.create_location(organization.id, "Hall 1")
    machine = await client.new_robot("press", location.id)
    (part,) = await client.get_robot_parts(machine)
    return str(part.id)

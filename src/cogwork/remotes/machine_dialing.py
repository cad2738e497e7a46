"""Connects to another machine by the configured method."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.discovery.search import find_machine
from cogwork.net.address import TLS_PREFIX, is_ip_address
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.dialing import DialTarget, dial, find_login, resolve_address
from cogwork.remotes.errors import NotReached, RemoteUnavailable
from cogwork.remotes.grpc_connection import GrpcConnection
from cogwork.remotes.webrtc_dialing import DialingProcess, call_machine

_log = logging.getLogger("rdk.remotes")

_MACHINE_PORT: Final = 8080
_CLOUD_PORT: Final = 443
_SEARCH_SECONDS: Final = 1.0


class MachineDialer:
    def __init__(
        self,
        clock: Clock,
        find_webrtc: Callable[[], DialingProcess | None],
        *,
        allow_plaintext: bool,
        mdns: bool,
    ) -> None:
        """Set up the connector. `mdns`: also look for machines on the local network."""
        self._clock = clock
        self._find_webrtc = find_webrtc
        self._allow_plaintext = allow_plaintext
        self._mdns = mdns
        self._was_open = False
        """Whether the last machine required no login although one is configured."""

    async def connect(self, config: RemoteConfig) -> RemoteConnection:
        """Connect and log in. Raise RemoteUnavailable or AioRpcError."""
        if config.managed_by:
            return await self._connect_by_cloud(config)
        connection = await self._dial(self._destination(config, config.address, _MACHINE_PORT))
        self._report_open(config.name, connection.is_open)
        try:
            await connection.open_calls()
        except BaseException:
            await connection.aclose()
            raise
        return connection

    def _report_open(self, name: str, is_open: bool) -> None:
        """Log that a machine requires no login, but not for each connection."""
        if is_open and not self._was_open:
            _log.warning(
                'remote "%s" requires no login, so everyone on its network can use it; protect it '
                'with "auth" in its configuration, or remove "auth" of this remote here',
                name,
            )
        self._was_open = is_open

    async def _dial(self, to: DialTarget) -> GrpcConnection:
        try:
            return await dial(to, self._clock)
        except NotReached:
            found = await self._find_on_network(to)
            if found is None:
                raise
        return await dial(found, self._clock)

    async def _find_on_network(self, to: DialTarget) -> DialTarget | None:
        """Return the address of the machine on the local network; None if it is not found.

        Use mDNS here, because many computers cannot resolve the names of machines themselves.
        """
        prefix = TLS_PREFIX if to.address.startswith(TLS_PREFIX) else ""
        name, _, port = to.address.removeprefix(TLS_PREFIX).rpartition(":")
        if not self._mdns or is_ip_address(name.strip("[]")):
            return None
        machine = await find_machine(name, _SEARCH_SECONDS)
        if machine is None:
            return None
        # The name of a computer needs a port, because a computer may run several machines. The name
        # of a machine does not.
        port = port if name == machine.host else str(machine.port)
        host = f"[{machine.address}]" if ":" in machine.address else machine.address
        return to._replace(address=f"{prefix}{host}:{port}", certificate_name=name)

    async def _connect_by_cloud(self, config: RemoteConfig) -> RemoteConnection:
        process = self._find_webrtc()
        if process is None:
            raise RemoteUnavailable(
                "managed_by needs WebRTC, which is off or not installed: pip install "
                "'cogwork[webrtc]', and start the server without -webrtc=false"
            )
        cloud = self._destination(config, config.managed_by, _CLOUD_PORT)
        try:
            signaling = await dial(cloud, self._clock)
        except RemoteUnavailable as error:
            raise RemoteUnavailable(f"the cloud {config.managed_by}: {error}") from None
        try:
            return await call_machine(config.address, signaling, process)
        finally:
            await signaling.aclose()

    def _destination(self, config: RemoteConfig, address: str, default_port: int) -> DialTarget:
        return DialTarget(
            resolve_address(address, default_port),
            find_login(config),
            config.insecure,
            self._allow_plaintext,
        )

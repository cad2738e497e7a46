"""The public network side of a server: applies network settings, and announces the addresses."""

from __future__ import annotations

from cogwork.auth.access_list import AccessList
from cogwork.config.schema.machine import MachineConfig
from cogwork.robot.middleware.authentication import Authentication
from cogwork.server.background_tasks import BackgroundTasks
from cogwork.server.certificates import Certificates
from cogwork.server.discovery import Discovery
from cogwork.server.listen_addresses import resolve_listen_addresses
from cogwork.server.login import ConfiguredLogin
from cogwork.server.serving_file import ServingFile
from cogwork.serving.listen_addresses import ListenAddresses
from cogwork.serving.listeners import Listeners


class PublicNetwork:
    def __init__(
        self,
        listeners: Listeners,
        certificates: Certificates,
        authentication: Authentication,
        discovery: Discovery | None,
        serving_file: ServingFile,
        tasks: BackgroundTasks,
        port: int | None,
    ) -> None:
        """Create the network side. `port` takes precedence over the configured port."""
        self._listeners = listeners
        self._certificates = certificates
        self._authentication = authentication
        self._discovery = discovery
        self._serving_file = serving_file
        self._tasks = tasks
        self._port = port
        self._config: MachineConfig | None = None

    async def start(self, config: MachineConfig) -> ListenAddresses:
        """Start to listen, and return the requested addresses."""
        listen = self._resolve(config)
        await self._listeners.start(listen)
        return listen

    def apply(self, config: MachineConfig) -> None:
        self._config = config
        self._tasks.start(self._change(config, self._resolve(config)), "network")

    def use_access(self, login: ConfiguredLogin, access: AccessList) -> None:
        """Apply the access list of the cloud."""
        had_login = self._has_login
        login.use_access(access)
        if self._config is not None and self._has_login != had_login:
            # Choose the addresses again: with a login, the machine may listen on more than
            # loopback.
            self.apply(self._config)

    def write_serving_file(self) -> None:
        self._serving_file.write(
            self._listeners.addresses, is_encrypted=self._certificates.is_in_use
        )

    @property
    def _has_login(self) -> bool:
        return self._authentication.authenticator is not None

    def _resolve(self, config: MachineConfig) -> ListenAddresses:
        return resolve_listen_addresses(config, self._port, requires_login=self._has_login)

    async def _change(self, config: MachineConfig, listen: ListenAddresses) -> None:
        await self._listeners.change(listen)
        self.write_serving_file()
        if self._discovery is not None:
            self._discovery.apply(config, self._listeners.addresses)

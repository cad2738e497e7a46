"""The certificate of the server: from the files of the configuration, or else from the cloud."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cogwork.config.schema.machine import MachineConfig
from cogwork.serving.certificate_watcher import CertificateFiles, CertificateWatcher


class Certificates:
    def __init__(
        self,
        watcher: CertificateWatcher,
        find_cloud_certificate: Callable[[], Path | None],
        *,
        no_tls: bool,
    ) -> None:
        """Create the selector. `find_cloud_certificate` returns the file with the cloud's
        certificate and key; None if the cloud has sent none."""
        self._watcher = watcher
        self._find_cloud_certificate = find_cloud_certificate
        self._no_tls = no_tls
        self._config: MachineConfig | None = None

    @property
    def is_in_use(self) -> bool:
        return self._watcher.is_in_use

    async def load(self, config: MachineConfig) -> None:
        """Load the certificate of the first configuration. Raise InvalidCertificate."""
        await self._watcher.load(self._find_files(config))

    def apply(self, config: MachineConfig) -> None:
        self._config = config
        self.use_cloud_certificate()

    def use_cloud_certificate(self) -> None:
        """Use the current certificate of the cloud, unless the configuration sets another."""
        if self._config is not None:
            self._watcher.change_files(self._find_files(self._config))

    async def watch(self) -> None:
        await self._watcher.watch()

    def _find_files(self, config: MachineConfig) -> CertificateFiles | None:
        network = config.network
        if self._no_tls or network.no_tls:
            return None
        if not network.tls_cert_file:
            of_cloud = self._find_cloud_certificate() if config.cloud is not None else None
            return CertificateFiles(of_cloud, of_cloud) if of_cloud is not None else None
        authority = network.tls_client_ca_file
        return CertificateFiles(
            Path(network.tls_cert_file).expanduser(),
            Path(network.tls_key_file).expanduser(),
            Path(authority).expanduser() if authority else None,
            tuple(config.auth.tls_auth_entities),
        )

"""Finds the archive of a package: a file, a URL, or a URL from the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import PackageConfig
from cogwork.packages.errors import PackageUnavailable

if TYPE_CHECKING:
    from cogwork.packages.cloud_packages import CloudPackages
    from cogwork.packages.fetch import ArchiveSource


class ArchiveLocator:
    def __init__(self, *, allow_plaintext: bool) -> None:
        """Create a locator. `allow_plaintext`: allow sending the login of the machine
        unencrypted."""
        self.cloud: CloudConfig | None = None
        """The cloud of the machine; None if it has left its cloud."""
        self._allow_plaintext = allow_plaintext
        self._connection: tuple[CloudConfig, CloudPackages] | None = None

    async def locate(self, config: PackageConfig) -> ArchiveSource:
        from cogwork.packages.fetch import ArchiveSource

        if config.archive is not None:
            return ArchiveSource(file=config.archive)
        if config.url:
            return ArchiveSource(config.url)
        return await (await self._connect()).locate(config)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection[1].aclose()

    async def _connect(self) -> CloudPackages:
        from cogwork.packages.cloud_packages import CloudPackages

        cloud = self.cloud
        if cloud is None:
            raise PackageUnavailable("the machine has left its cloud")
        if self._connection is None or self._connection[0] != cloud:
            connection = CloudPackages(cloud, allow_plaintext=self._allow_plaintext)
            await self.aclose()
            self._connection = cloud, connection
        return self._connection[1]

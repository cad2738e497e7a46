"""Asks the machine's cloud for the URLs of packages."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import PackageConfig
from cogwork.net.address import is_loopback
from cogwork.packages.errors import PackageUnavailable
from cogwork.packages.fetch import ArchiveSource
from cogwork.resource.sdk import clean_import as sdk
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.packages.v1 import packages_pb2 as pb  # noqa: E402

_GET_PACKAGE: Final = "/viam.app.packages.v1.PackageService/GetPackage"
_TIMEOUT: Final = 15.0
_LATEST: Final = "latest"


class CloudPackages:
    """A separate connection to the cloud, which is kept while packages are missing."""

    def __init__(self, cloud: CloudConfig, *, allow_plaintext: bool) -> None:
        """Create the connection. Raise PackageUnavailable."""
        self._login = CloudLogin.from_config(cloud)
        self._allow_plaintext = allow_plaintext
        try:
            self._client = CloudClient(
                cloud.app_address, self._login, allow_plaintext=allow_plaintext
            )
        except (CloudUnavailable, ValueError) as error:
            raise PackageUnavailable(str(error)) from None

    async def locate(self, package: PackageConfig) -> ArchiveSource:
        """Return the URL of a package and the credentials for it. Raise PackageUnavailable."""
        request = pb.GetPackageRequest(
            id=package.package,
            version=package.version or _LATEST,
            type=pb.PackageType.Value(f"PACKAGE_TYPE_{package.type.upper()}"),
            include_url=True,
        )
        try:
            reply = await self._client.call(_GET_PACKAGE, request, pb.GetPackageResponse, _TIMEOUT)
        except CloudUnavailable as error:
            raise PackageUnavailable(str(error)) from None
        url = reply.package.url
        if not url:
            raise PackageUnavailable(
                f"the cloud at {self._client.address} sent no URL for {package.package}"
            )
        return ArchiveSource(url, credentials=self._credentials_for(url))

    def _credentials_for(self, url: str) -> dict[str, str]:
        """Return the headers that log in to the server of the URL, which the cloud has chosen."""
        parts = urlsplit(url)
        is_private = parts.scheme == "https" or is_loopback(parts.hostname or "")
        if not is_private and not self._allow_plaintext:
            raise PackageUnavailable(
                f"the login would be sent unencrypted to {parts.netloc}; let the cloud serve "
                "https, or start the server with -allow-insecure-creds"
            )
        entity, secret = (
            ("key_id", "key") if self._login.type == "api-key" else ("part_id", "secret")
        )
        return {entity: self._login.entity, secret: self._login.secret}

    async def aclose(self) -> None:
        await self._client.aclose()

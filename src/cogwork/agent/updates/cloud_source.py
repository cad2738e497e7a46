"""Updates from the cloud that the machine has joined."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import platform
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from google.protobuf.empty_pb2 import Empty
from pydantic import ValidationError

from cogwork.agent.errors import SourceUnavailable
from cogwork.agent.release.manifest import find_version, is_version
from cogwork.agent.updates.source import UpdateTarget
from cogwork.config.check.key_shapes import name_section_keys
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.substitution import substitute
from cogwork.core.os_error_text import os_reason
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product
from cogwork.resource.sdk import clean_import as sdk
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable, MethodMissing
from cogwork.uplink.link_files import link_directory
from cogwork.uplink.part_secret import read_current_cloud
from cogwork.wire.messages.update_method import AGENT_TAG, REPORT, UpdateReport, read_rollbacks

assert sdk.VERSION  # `clean_import` must be imported before any other module of the SDK
from viam.gen.app.agent.v1 import agent_pb2 as pb  # noqa: E402

_CHECK: Final = "/viam.app.agent.v1.AgentDeviceService/DeviceAgentConfig"
_TIMEOUT: Final = 15.0
_ANY_VERSION: Final = "customURL"
"""Sent by the cloud instead of a version. The file name in the URL then contains the version."""


class CloudSource:
    """Updates from the cloud that the machine's file names. The file is read at each check, because
    a machine may join a cloud at any time."""

    def __init__(self, config: Path, server_home: Path) -> None:
        """`server_home` is the data directory of the server, with the secret of the part."""
        self._config = config
        self._server_home = server_home
        self._cloud: CloudConfig | None = None
        self._client: CloudClient | None = None

    async def check(
        self, current: Mapping[Product, str | None], on_trial: Collection[Product]
    ) -> Mapping[Product, UpdateTarget]:
        installed = {product: version or "" for product, version in current.items()}
        # Do not report a version on trial as running: the cloud would assume that it works.
        running = {**installed, **dict.fromkeys(on_trial, "")}
        part, client = await self._connect()
        request = pb.DeviceAgentConfigRequest(
            id=part,
            host_info=pb.HostInfo(platform=PLATFORM, distro=_distribution(), tags=[AGENT_TAG]),
            version_info=pb.VersionInfo(
                agent_running=running[Product.AGENT],
                agent_installed=installed[Product.AGENT],
                viam_server_running=running[Product.SERVER],
                viam_server_installed=installed[Product.SERVER],
            ),
        )
        try:
            reply = await client.call(_CHECK, request, pb.DeviceAgentConfigResponse, _TIMEOUT)
        except CloudUnavailable as error:
            raise SourceUnavailable(str(error)) from None
        offered = {
            Product.SERVER: reply.viam_server_update_info,
            Product.AGENT: reply.agent_update_info,
        }
        rollbacks = read_rollbacks(reply.advanced_settings)
        return {
            product: target
            for product, each in offered.items()
            if (target := _make_target(product, each, product in rollbacks)) is not None
        }

    async def report(self, report: UpdateReport) -> None:
        part, client = await self._connect()
        message = dataclasses.replace(report, id=part).to_struct()
        try:
            await client.call(REPORT, message, Empty, _TIMEOUT)
        except MethodMissing:
            return  # other vendors' clouds do not have this method
        except CloudUnavailable as error:
            raise SourceUnavailable(str(error)) from None

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _connect(self) -> tuple[str, CloudClient]:
        """Return the ID of the part, and a client of its cloud. Raise SourceUnavailable."""
        cloud = await asyncio.to_thread(self._read_cloud)
        if self._client is None or cloud != self._cloud:
            await self.aclose()
            self._client = None
            try:
                self._client = CloudClient(cloud.app_address, CloudLogin.from_config(cloud))
            except (CloudUnavailable, ValueError) as error:
                raise SourceUnavailable(str(error)) from None
            self._cloud = cloud
        return cloud.id, self._client

    def _read_cloud(self) -> CloudConfig:
        cloud = read_cloud(self._config)
        return read_current_cloud(link_directory(self._server_home, cloud), cloud)


def _make_target(
    product: Product, offered: pb.UpdateInfo, is_rollback: bool
) -> UpdateTarget | None:
    version: str | None = offered.version
    if version == _ANY_VERSION:
        name = unquote(urlsplit(offered.url).path).rpartition("/")[2]
        version = find_version(name, product, PLATFORM)
    if version is None or not is_version(version) or not offered.url:
        return None
    return UpdateTarget(version, offered.url, offered.sha256.hex(), is_rollback)


def read_cloud(config: Path) -> CloudConfig:
    """Return the cloud in a machine's file. Raise SourceUnavailable."""
    try:
        document: Any = read_json(
            substitute(config.read_text(encoding="utf-8"), os.environ).text
        ).value
        return CloudConfig.model_validate(_name_keys(document)["cloud"])
    except OSError as error:
        raise SourceUnavailable(f"{config} cannot be read: {os_reason(error)}") from None
    except (JsonSyntaxError, UnicodeDecodeError) as error:
        raise SourceUnavailable(f"{config} is not JSON: {error}") from None
    except (KeyError, TypeError, ValidationError):
        raise SourceUnavailable(
            f'{config} names no cloud; join one, or set "updates" in the settings of the agent to '
            "a folder or an address with releases"
        ) from None


def _name_keys(document: Any) -> Any:
    return name_section_keys(document) if isinstance(document, dict) else document


def _distribution() -> str:
    """Return the Linux distribution, such as "debian:12"."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    return f"{release.get('ID', '')}:{release.get('VERSION_ID', '')}"

"""A check that a machine can log in to its cloud, before the agent replaces its server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from cogwork.agent.errors import CannotInstallAgent, SourceUnavailable
from cogwork.agent.updates.cloud_source import read_cloud
from cogwork.config.schema.cloud import CloudConfig
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable

_TIMEOUT: Final = 30.0


def require_login(config: Path) -> None:
    """Raise CannotInstallAgent if the machine cannot log in to the cloud in its file."""
    try:
        cloud = read_cloud(config)
    except SourceUnavailable:
        return  # the file names no cloud
    try:
        asyncio.run(_log_in(cloud))
    except (CloudUnavailable, ValueError) as error:
        raise CannotInstallAgent(
            f"with {config}, the machine cannot log in to its cloud: {error}"
        ) from None


async def _log_in(cloud: CloudConfig) -> None:
    client = CloudClient(cloud.app_address, CloudLogin.from_config(cloud))
    try:
        await client.log_in(_TIMEOUT)
    finally:
        await client.aclose()

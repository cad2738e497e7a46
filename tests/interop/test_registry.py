"""A module that the SDK uploads in one large message."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.support.archives import make_archive
from tests.support.cloud.fleet import run_cloud
from viam.proto.app import ModuleFileInfo

DEADLINE = 60.0


async def test_large_module_in_one_message(tmp_path: Path) -> None:
    """The SDK sends the whole file at once."""
    async with run_cloud(tmp_path) as cloud:
        connected = await cloud.connect()
        client = connected.app_client
        (organization,) = await client.list_organizations()
        module, _ = await client.create_module(organization.id, "drive")
        info = ModuleFileInfo(module_id=module, version="1.0.0", platform="any")
        archive = make_archive(data=os.urandom(20 << 20))
        async with asyncio.timeout(DEADLINE):
            assert "/packages/" in await client.upload_module_file(info, archive)
        connected.close()

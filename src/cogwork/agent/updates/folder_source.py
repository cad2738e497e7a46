"""Updates from a folder or a web address, for machines without a cloud.

`channel.json` in the folder names the version of each product, as in `{"server": "1.4.2"}`. The
releases are in the same folder. With `"rollback": true`, machines with newer versions return to the
named versions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from cogwork.agent.errors import SourceUnavailable
from cogwork.agent.release.manifest import archive_name, is_version
from cogwork.agent.updates.download import fetch_small
from cogwork.agent.updates.source import UpdateTarget
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product
from cogwork.core.workers import run_in_thread
from cogwork.wire.messages.update_method import UpdateReport

CHANNEL: Final = "channel.json"
_MAX_CHANNEL: Final = 1 << 16
_TIMEOUT: Final = 60.0


class FolderSource:
    def __init__(self, url: str) -> None:
        """`url` is a path, or an address that begins with file://, http:// or https://."""
        self._url = url.rstrip("/") if "://" in url else f"file://{url.rstrip('/')}"

    async def check(
        self, current: Mapping[Product, str | None], on_trial: Collection[Product]
    ) -> Mapping[Product, UpdateTarget]:
        del current, on_trial
        address = f"{self._url}/{CHANNEL}"
        try:
            data = await run_in_thread("updates", _TIMEOUT, fetch_small, address, _MAX_CHANNEL)
            value = json.loads(data)
            targets = {
                product: self._describe(product, value[product], value.get("rollback") is True)
                for product in Product
                if product in value
            }
        except TimeoutError:
            raise SourceUnavailable(f"{address} did not answer within {_TIMEOUT:g} s") from None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SourceUnavailable(f"{address} cannot be read: {error}") from None
        return targets

    async def report(self, report: UpdateReport) -> None:
        """Do nothing, because a folder cannot receive reports."""

    async def aclose(self) -> None: ...

    def _describe(self, product: Product, version: object, is_rollback: bool) -> UpdateTarget:
        if not is_version(version):
            raise ValueError(f"{version!r} is not a version")
        name = archive_name(product, str(version), PLATFORM)
        return UpdateTarget(str(version), f"{self._url}/{name}", is_rollback=is_rollback)

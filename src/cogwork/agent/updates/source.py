"""The interface to a source of updates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import UpdateReport


@dataclass(frozen=True, slots=True)
class UpdateTarget:
    """A version that the machine should have."""

    version: str
    url: str
    """The address of the release; empty if no download is necessary."""
    sha256: str = ""
    """The hash of the release; empty if the source has none. The signature is always verified."""
    is_rollback: bool = False
    """Whether a machine with a newer version should go back to this one."""


class UpdateSource(Protocol):
    async def check(
        self, current: Mapping[Product, str | None], on_trial: Collection[Product]
    ) -> Mapping[Product, UpdateTarget]:
        """Return the versions that the machine should have, given its current versions.

        `on_trial` has the products whose current version is on trial. Raise SourceUnavailable.
        """

    async def report(self, report: UpdateReport) -> None:
        """Report the result of an update to the source. Raise SourceUnavailable."""

    async def aclose(self) -> None: ...

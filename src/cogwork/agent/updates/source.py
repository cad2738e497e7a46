"""Where the agent learns which versions it should have."""

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
    """Where its release is. Empty if it need not be fetched."""
    sha256: str = ""
    """Of the release. Empty if the source does not tell; the signature is verified anyway."""
    is_rollback: bool = False
    """Whether the machine shall go back to it if it has a newer one."""


class UpdateSource(Protocol):
    async def check(
        self, current: Mapping[Product, str | None], on_trial: Collection[Product]
    ) -> Mapping[Product, UpdateTarget]:
        """Return the versions that the machine should have, given those that it has.

        `on_trial` are the products whose version has not shown yet that it works. Raise
        SourceUnavailable.
        """

    async def report(self, report: UpdateReport) -> None:
        """Tell what became of an update. Raise SourceUnavailable."""

    async def aclose(self) -> None: ...

"""Protection from old versions: signed once, but with faults that were fixed since.

A version below the minimum is refused, no matter who offers it. One that is older than the current
version needs someone who wants to go back. Returning to the former version after a failure is not
decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.agent.slots.minimum_store import Minimum
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import is_older


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    is_final: bool
    """Whether only another version helps. Otherwise the version waits for a person."""


def find_refusal(
    product: Product,
    version: str,
    current: str | None,
    minimum: Minimum | None,
    *,
    is_wanted: bool,
) -> Refusal | None:
    """Return why an offered version is not installed; None if it may be.

    `is_wanted` says that someone wants to go back to it, even if the current version is newer.
    """
    if minimum is not None and is_older(version, minimum.version):
        return Refusal(minimum.explain(), is_final=True)
    if current is not None and is_older(version, current) and not is_wanted:
        return Refusal(
            f"it is older than {current}, which this machine has; to go back, roll it out with "
            f"--rollback, or run on the machine: cogwork-agent allow {product} {version}",
            is_final=False,
        )
    return None

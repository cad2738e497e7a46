"""Protection against downgrades to versions with known faults.

A version below the minimum is always refused. A version older than the current one must be
requested by a person. Rollbacks after a failure are not checked here.
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
    """True if this version can never be installed, False if a person may allow it."""


def find_refusal(
    product: Product,
    version: str,
    current: str | None,
    minimum: Minimum | None,
    *,
    is_wanted: bool,
) -> Refusal | None:
    """Return the reason why an offered version is not installed; None if it may be.

    `is_wanted` is True if a person has requested this version, even if the current one is newer.
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

"""The minimum version of each product, which signed releases set. Older versions are not installed.

The minimums have their own file, because the launcher and older agents would drop them when they
write the state. A minimum is never lowered.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.agent.errors import BadState
from cogwork.agent.slots.layout import Layout
from cogwork.core.files import atomic
from cogwork.core.versions.minimum_version import MINIMUM_VERSIONS
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import has_order, is_older

_log = logging.getLogger("agent.state")


@dataclass(frozen=True, slots=True)
class Minimum:
    version: str
    """The oldest allowed version."""
    release: str
    """The version of the release that set the minimum."""

    def explain(self) -> str:
        """Return the reason why older versions are refused."""
        return (
            f"it is older than {self.version}, the minimum version that release {self.release} "
            f"has set on this machine; use {self.version} or a newer version"
        )


class MinimumStore:
    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, product: Product) -> Minimum | None:
        """Return the minimum of a product; None if no release has set one. Raise BadState."""
        return load_minimums(self._path).get(product)

    def raise_to(self, product: Product, minimum: Minimum) -> None:
        """Store a minimum if it is higher than the stored one. Raise BadState or OSError."""
        known = load_minimums(self._path)
        if product in known and not is_older(known[product].version, minimum.version):
            return
        _save(self._path, {**known, product: minimum})


def prepare_minimums(layout: Layout, running: str) -> MinimumStore:
    """Return the store, after adding the minimums that the running version of the agent demands.

    If the file is damaged, replace it, and use the current versions as the minimums.
    """
    store = MinimumStore(layout.minimums)
    try:
        _repair(layout)
        for product, version in MINIMUM_VERSIONS.items():
            store.raise_to(product, Minimum(version, running))
    except OSError as error:
        # Continue without saving: the machine must run even with a full disk.
        _log.error("cannot save the minimum versions that may be installed: %s", error)
    return store


def _repair(layout: Layout) -> None:
    try:
        load_minimums(layout.minimums)
    except BadState as error:
        _log.error(
            "%s; replacing it: from now on, versions older than the current ones are refused",
            error,
        )
        current = {product: layout.current_version(product) for product in Product}
        _save(
            layout.minimums,
            {
                product: Minimum(version, version)
                for product, version in current.items()
                if version is not None and has_order(version)
            },
        )


def load_minimums(path: Path) -> dict[Product, Minimum]:
    """Return the stored minimums by product. Raise BadState if the file is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _make_error(path, str(error)) from None
    try:
        checksum, _, body = data.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            raise _make_error(path, "its checksum is wrong")
        value = json.loads(body)
        return {product: _parse(value[product]) for product in Product if product in value}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _make_error(path, repr(error)) from None


def _save(path: Path, minimums: Mapping[Product, Minimum]) -> None:
    value = {product: dataclasses.asdict(each) for product, each in minimums.items()}
    body = json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
    atomic.write(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body, 0o644)


def _parse(value: Any) -> Minimum:
    found = Minimum(str(value["version"]), str(value["release"]))
    if not has_order(found.version):
        raise ValueError(f"{found.version!r} is not a version")
    return found


def _make_error(path: Path, reason: str) -> BadState:
    return BadState(
        f"{path}, which has the oldest versions that may be installed, cannot be read: {reason}; "
        "remove it to start without a minimum"
    )

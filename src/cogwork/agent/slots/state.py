"""What the agent remembers about versions: which one is on trial, which was good, which failed.

The file has a checksum. Without it, or if it is damaged, the links still tell what is current, so
the machine runs and only forgets what failed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cogwork.agent.errors import BadState
from cogwork.agent.release.manifest import is_version
from cogwork.core.files import atomic
from cogwork.core.versions.product import Product

_MAX_FAILED: Final = 20
"""Versions that failed and are remembered."""


@dataclass(frozen=True, slots=True)
class SlotTrial:
    """A version that is current and has not shown yet that it works."""

    version: str
    fallback: str | None
    """The version to return to. None if it is the first one."""
    since: float
    """Seconds since 1970."""
    boots: int = 0
    """How often it was started again on trial, because something interrupted it."""


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str
    time: float


@dataclass(frozen=True, slots=True)
class ProductState:
    last_good: str | None = None
    previous: str | None = None
    """The one that was good before."""
    trial: SlotTrial | None = None
    failed: Mapping[str, Failure] = field(default_factory=dict)
    """By version. They are not tried again."""

    def begin_trial(self, version: str, current: str | None, now: float) -> ProductState:
        """Record that a version is tried instead of the current one."""
        fallback = current
        if self.trial is not None and self.trial.version == current:
            # It is not known to work, so it is nothing to return to.
            fallback = self.trial.fallback or current
        return dataclasses.replace(self, trial=SlotTrial(version, fallback, now))

    def count_boot(self) -> ProductState:
        """Record that the version on trial is started once more."""
        assert self.trial is not None
        return dataclasses.replace(
            self, trial=dataclasses.replace(self.trial, boots=self.trial.boots + 1)
        )

    def accept(self, version: str) -> ProductState:
        """Record that a version works."""
        previous = self.previous if version == self.last_good else self.last_good
        failed = {key: each for key, each in self.failed.items() if key != version}
        return ProductState(version, previous, None, failed)

    def reject(self, version: str, reason: str, now: float) -> ProductState:
        """Record that a version does not work."""
        kept = [*((k, v) for k, v in self.failed.items() if k != version)][1 - _MAX_FAILED :]
        failed = {**dict(kept), version: Failure(reason, now)}
        return dataclasses.replace(self, trial=None, failed=failed)

    def forget_failures(self) -> ProductState:
        return dataclasses.replace(self, failed={})

    @property
    def used(self) -> frozenset[str]:
        """Versions that must stay installed."""
        trial = (self.trial.version, self.trial.fallback) if self.trial is not None else ()
        return frozenset(each for each in (self.last_good, self.previous, *trial) if each)


State = Mapping[Product, ProductState]


def load_state(path: Path) -> dict[Product, ProductState]:
    """Return the state; without a file, an empty one. Raise BadState if it is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {product: ProductState() for product in Product}
    except OSError as error:
        raise BadState(f"{path} cannot be read: {error}") from None
    try:
        checksum, _, body = data.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            raise BadState(f"{path} is damaged: its checksum is wrong")
        value = json.loads(body)
        return {product: _parse(value.get(product, {})) for product in Product}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadState(f"{path} is damaged: {error!r}") from None


def save_state(path: Path, state: State) -> None:
    value = {product: dataclasses.asdict(each) for product, each in state.items()}
    body = json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
    atomic.write(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _parse(value: Mapping[str, Any]) -> ProductState:
    trial = value.get("trial")
    return ProductState(
        _parse_version(value.get("last_good")),
        _parse_version(value.get("previous")),
        None
        if trial is None
        else SlotTrial(
            _require_version(trial["version"]),
            _parse_version(trial.get("fallback")),
            float(trial["since"]),
            int(trial.get("boots", 0)),
        ),
        {
            _require_version(version): Failure(str(each["reason"]), float(each["time"]))
            for version, each in value.get("failed", {}).items()
        },
    )


def _parse_version(value: Any) -> str | None:
    return None if value is None else _require_version(value)


def _require_version(value: Any) -> str:
    if not is_version(value):
        raise ValueError(f"{value!r} is not a version")
    return str(value)

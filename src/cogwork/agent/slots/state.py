"""The agent's state of the versions: on trial, working or failed.

The file has a checksum. If the file is missing or damaged, the links still name the current
versions. The machine then runs, and only the record of failures is lost.
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
"""Maximum number of failed versions to remember."""


@dataclass(frozen=True, slots=True)
class SlotTrial:
    """The trial of the current version, which has not proved yet that it works."""

    version: str
    fallback: str | None
    """The version to return to if the trial fails; None for the first version."""
    since: float
    """The time of the switch, in seconds since 1970."""
    boots: int = 0
    """Number of times that the version was started again because its trial was interrupted."""


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str
    time: float


@dataclass(frozen=True, slots=True)
class ProductState:
    last_good: str | None = None
    previous: str | None = None
    """The working version before `last_good`."""
    trial: SlotTrial | None = None
    failed: Mapping[str, Failure] = field(default_factory=dict)
    """The failed versions, which are not tried again."""

    def begin_trial(self, version: str, current: str | None, now: float) -> ProductState:
        """Record that the trial of a version begins."""
        fallback = current
        if self.trial is not None and self.trial.version == current:
            # Do not return to a version whose own trial was not over, but to the version before it.
            fallback = self.trial.fallback or current
        return dataclasses.replace(self, trial=SlotTrial(version, fallback, now))

    def count_boot(self) -> ProductState:
        """Record another start of the version on trial."""
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
        """The versions that must stay installed."""
        trial = (self.trial.version, self.trial.fallback) if self.trial is not None else ()
        return frozenset(each for each in (self.last_good, self.previous, *trial) if each)


State = Mapping[Product, ProductState]


def load_state(path: Path) -> dict[Product, ProductState]:
    """Return the state in the file; an empty one if it does not exist. Raise BadState."""
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

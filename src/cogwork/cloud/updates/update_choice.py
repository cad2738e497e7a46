"""Chooses the version of a product for a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from viam.gen.app.agent.v1 import agent_pb2 as pb

from cogwork.cloud.fleet.part_software import Software
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.updates.releases import find_release, list_platforms
from cogwork.cloud.updates.rollout import Choice, Rollout, Trial, choose_version
from cogwork.cloud.updates.rollouts import read_trials, select_rollouts
from cogwork.cloud.updates.version_control import (
    DEFAULT_CHANNEL,
    Channel,
    CustomUrl,
    InvalidSource,
    PinnedVersion,
    Source,
)
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome

CUSTOM_URL: Final = "customURL"
"""Stands for the version of a custom URL. Agents do not check the version of its content."""
OTHER_AGENT: Final = (
    "its agent is of another make, so it keeps what it runs; to move the machine over, install "
    "cogwork-agent there"
)


class Update(NamedTuple):
    """The update of a product for a part."""

    info: pb.UpdateInfo | None = None
    """The version and its URL; None if the part keeps its version."""
    hindrance: str = ""
    """The reason why the part does not get its intended version; else empty."""
    offered_by: Rollout | None = None
    """The rollout that offers the version to the part for the first time."""
    proved: Rollout | None = None
    """The rollout whose version the part now runs, as proof that the version works."""
    is_rollback: bool = False
    """Whether the part may go back to this version from a newer one."""


def choose_update(
    tx: Transaction, source: Source, product: Product, part_id: str, software: Software, origin: str
) -> Update:
    """Choose the update. `origin` is the URL of the cloud, which serves the releases."""
    match source:
        case CustomUrl():
            return Update(
                pb.UpdateInfo(filename=source.filename, url=source.url, version=CUSTOM_URL)
            )
        case InvalidSource():
            return Update(hindrance=source.reason)
        case PinnedVersion():
            return _find_update(tx, product, Choice(source.version), software, origin)
        case Channel():
            return _follow_channel(tx, source.name, product, part_id, software, origin)


def _follow_channel(
    tx: Transaction, channel: str, product: Product, part_id: str, software: Software, origin: str
) -> Update:
    rollouts = read_trials(tx, select_rollouts(tx, channel, product), part_id)
    if not rollouts:
        reason = f"the channel {channel} has no version of {product}; roll one out"
        # A part without an explicit channel expects no update, so report nothing.
        return Update(hindrance="" if channel == DEFAULT_CHANNEL else reason)
    choice = choose_version(rollouts, part_id, software.current)
    if not choice.version:
        return Update(hindrance=f"the channel {channel} has no version that works here")
    found = _find_update(tx, product, choice, software, origin)
    trials = {rollout.id: trial for rollout, trial in rollouts}
    if found.offered_by is not None and trials[found.offered_by.id].outcome is not None:
        found = found._replace(offered_by=None)
    proved = [
        rollout
        for rollout, trial in rollouts
        if rollout.version == software.running and trial.outcome is Outcome.WAITING
    ]
    return found._replace(
        proved=proved[0] if proved else None,
        is_rollback=_is_rollback(choice, rollouts, software.current),
    )


def _is_rollback(choice: Choice, rollouts: Sequence[tuple[Rollout, Trial]], current: str) -> bool:
    """Return whether the part may get an older version: in a rollback, or because its version has
    failed."""
    if choice.rollout is not None and choice.rollout.is_rollback:
        return True
    return any(
        trial.outcome is not None and trial.outcome.is_failure
        for rollout, trial in rollouts
        if rollout.version == current != choice.version
    )


def _find_update(
    tx: Transaction, product: Product, choice: Choice, software: Software, origin: str
) -> Update:
    release = find_release(tx, product, choice.version, software.platform)
    if release is not None:
        info = pb.UpdateInfo(
            filename=release.filename,
            url=origin + release.path,
            version=release.version,
            sha256=bytes.fromhex(release.digest),
            format=pb.PACKAGE_FORMAT_RAW,
        )
        return Update(info, offered_by=choice.rollout)
    if choice.version == software.current:
        return Update()
    return Update(hindrance=_explain_missing(tx, product, choice.version, software.platform))


def _explain_missing(tx: Transaction, product: Product, version: str, platform: str) -> str:
    platforms = list_platforms(tx, product, version)
    if not platforms:
        return f"there is no release of {product} {version}"
    where = platform or "a machine of unknown platform"
    return f"{product} {version} is not released for {where}, only for {', '.join(platforms)}"

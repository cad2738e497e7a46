"""Versions of packages, and the choice of the version for a machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from cogwork.core.errors import InvalidRequest, NotFound

LATEST: Final = "latest"
LATEST_WITH_PRERELEASE: Final = "latest-with-prerelease"
ANY: Final = "any"

_SEMANTIC: Final = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9A-Za-z.-]{1,64}))?"
)
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:-]{0,99}")
_SERIES: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")
"""The beginning of versions: `1` stands for every version 1.x.y, and `1.2` for every 1.2.x."""

_Order = tuple[int, int, int, tuple[tuple[int, int, str], ...]]


class Artifact(NamedTuple):
    """An uploaded package for a version and a platform."""

    label: str
    """Identifies the artifact among all artifacts of its package."""
    version: str
    platform: str
    """Such as `linux/amd64`. `any` stands for one or both parts, as in `linux/any`."""
    tags: frozenset[str]
    """Tags that a machine must have to use the artifact, such as `distro:debian`."""


def require_semantic_version(version: str) -> str:
    if not _SEMANTIC.fullmatch(version):
        raise InvalidRequest(
            f'"{version[:100]}" is not a semantic version; use a version such as 1.2.0 or 1.2.0-rc1'
        )
    return version


def require_version(version: str) -> str:
    is_reserved = version in (LATEST, LATEST_WITH_PRERELEASE)
    if is_reserved or not _VERSION.fullmatch(version):
        raise InvalidRequest(
            f'"{version[:100]}" is not a version; use letters, digits and the characters . _ + : -'
        )
    return version


def choose_artifact(
    artifacts: Sequence[Artifact], wanted: str, platform: str, tags: Collection[str]
) -> Artifact:
    """Return the artifact for a machine. Raise NotFound with the reason if none fits.

    `artifacts` are in the order of their uploads. `wanted` is a version, the beginning of one (`1`
    or `1.2`), `latest` or `latest-with-prerelease`. If `platform` is empty, only artifacts for
    every platform fit.
    """
    if not artifacts:
        raise NotFound("nothing is uploaded yet; upload a version")
    of_version = [each for each in artifacts if _matches_version(each, wanted or LATEST)]
    if not of_version:
        raise NotFound(f"there is no version {wanted[:100] or LATEST}; {_list_versions(artifacts)}")
    usable = [each for each in of_version if _runs_on(each, platform, tags)]
    if not usable:
        raise NotFound(
            f"version {wanted[:100] or LATEST} is not available for "
            f"{platform or 'a machine of unknown platform'}; it is for "
            + ", ".join(sorted({each.platform or ANY for each in of_version}))
        )
    newest = _newest_version(usable)
    return max(
        (each for each in usable if each.version == newest),
        key=lambda each: (_count_exact(each.platform), len(each.tags)),
    )


def _matches_version(artifact: Artifact, wanted: str) -> bool:
    if wanted in (artifact.version, artifact.label, LATEST_WITH_PRERELEASE):
        return True
    order = _order_of(artifact.version)
    if order is None:
        return wanted == LATEST
    is_release = order[3] == _RELEASE
    in_series = _SERIES.fullmatch(wanted) and artifact.version.startswith(f"{wanted}.")
    return is_release and (wanted == LATEST or bool(in_series))


def _runs_on(artifact: Artifact, platform: str, tags: Collection[str]) -> bool:
    if not artifact.tags <= {*tags}:
        return False
    required = _split_platform(artifact.platform)
    offered = _split_platform(platform) if platform else ("", "")
    return all(one in (ANY, other) for one, other in zip(required, offered, strict=True))


def _split_platform(platform: str) -> tuple[str, str]:
    """Return the operating system and the architecture."""
    if platform in ("", ANY):
        return ANY, ANY
    system, _, architecture = platform.partition("/")
    return system, architecture


def _count_exact(platform: str) -> int:
    return sum(each != ANY for each in _split_platform(platform))


def _newest_version(artifacts: Sequence[Artifact]) -> str:
    """Return the highest semantic version, or else the version that was uploaded last."""
    ordered = [
        (order, each.version)
        for each in artifacts
        if (order := _order_of(each.version)) is not None
    ]
    return max(ordered)[1] if ordered else artifacts[-1].version


_RELEASE: Final = ((2, 0, ""),)
"""The sort key of a release, which is higher than the key of any pre-release."""


def _order_of(version: str) -> _Order | None:
    match = _SEMANTIC.fullmatch(version)
    if match is None:
        return None
    major, minor, patch, pre = match.groups()
    if pre is None:
        return int(major), int(minor), int(patch), _RELEASE
    parts = (
        (0, int(each), "") if each.isdecimal() and each.isascii() else (1, 0, each)
        for each in pre.split(".")
    )
    return int(major), int(minor), int(patch), tuple(parts)


def _list_versions(artifacts: Sequence[Artifact]) -> str:
    newest = [*dict.fromkeys(each.version for each in reversed(artifacts))]
    more = f" and {len(newest) - 5} more" if len(newest) > 5 else ""
    return f"uploaded are {', '.join(newest[:5])}{more}"

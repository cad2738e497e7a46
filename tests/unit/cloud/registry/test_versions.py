"""The version of a package that suits a machine."""

from __future__ import annotations

import pytest

from cogwork.cloud.registry.versions import (
    Artifact,
    choose_artifact,
    require_semantic_version,
    require_version,
)
from cogwork.core.errors import InvalidRequest, NotFound

UPLOADS = ["1.9.0", "1.10.0", "2.0.0-rc.2", "2.0.0-rc.10", "1.2.9"]


def artifact(version: str, platform: str = "", *tags: str) -> Artifact:
    return Artifact(f"{version} {platform} {tags}", version, platform, frozenset(tags))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("latest", "1.10.0"),
        ("", "1.10.0"),
        ("latest-with-prerelease", "2.0.0-rc.10"),
        ("1", "1.10.0"),
        ("1.2", "1.2.9"),
        ("1.9.0", "1.9.0"),
        ("2.0.0-rc.2", "2.0.0-rc.2"),
    ],
)
def test_version(wanted: str, expected: str) -> None:
    artifacts = [artifact(version) for version in UPLOADS]
    assert choose_artifact(artifacts, wanted, "linux/amd64", ()).version == expected


@pytest.mark.parametrize("wanted", ["3.0.0", "2", "1.1", "nonsense", "1.9.0.0"])
def test_missing_version_is_explained(wanted: str) -> None:
    with pytest.raises(NotFound, match=r"there is no version .*uploaded are 1\.2\.9"):
        choose_artifact([artifact(version) for version in UPLOADS], wanted, "linux/amd64", ())


def test_release_comes_after_its_candidates() -> None:
    artifacts = [artifact(version) for version in ("1.0.0", "1.0.0-rc1", "1.0.0-alpha")]
    assert choose_artifact(artifacts, "latest-with-prerelease", "x/y", ()).version == "1.0.0"


def test_other_versions_are_ordered_by_upload() -> None:
    artifacts = [artifact(version) for version in ("2026-02-01", "2026-01-01")]
    assert choose_artifact(artifacts, "latest", "", ()).version == "2026-01-01"


def test_most_specific_platform_wins() -> None:
    platforms = ["any", "linux/any", "linux/amd64", "linux/arm64", "darwin/arm64"]
    artifacts = [artifact("1.0.0", platform) for platform in platforms]
    for machine, expected in {
        "linux/amd64": "linux/amd64",
        "linux/riscv": "linux/any",
        "windows/amd64": "any",
        "": "any",
    }.items():
        assert choose_artifact(artifacts, "latest", machine, ()).platform == expected


def test_latest_is_the_newest_that_the_machine_can_run() -> None:
    artifacts = [artifact("1.0.0", "linux/arm64"), artifact("2.0.0", "linux/amd64")]
    assert choose_artifact(artifacts, "latest", "linux/arm64", ()).version == "1.0.0"
    with pytest.raises(NotFound, match=r"not available for linux/arm64; it is for linux/amd64"):
        choose_artifact(artifacts, "2.0.0", "linux/arm64", ())
    with pytest.raises(NotFound, match="a machine of unknown platform"):
        choose_artifact(artifacts, "2.0.0", "", ())


def test_tags_are_all_required_and_the_most_win() -> None:
    artifacts = [
        artifact("1.0.0", "linux/arm64", *tags) for tags in ((), ("gpu",), ("gpu", "pi:5"))
    ]
    for machine, expected in [((), 0), (("gpu",), 1), (("gpu", "pi:5", "x"), 2), (("pi:5",), 0)]:
        assert choose_artifact(artifacts, "", "linux/arm64", machine) == artifacts[expected]


def test_item_without_versions() -> None:
    with pytest.raises(NotFound, match="nothing is uploaded yet"):
        choose_artifact([], "latest", "linux/amd64", ())


@pytest.mark.parametrize("version", ["1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "", "1.2.3 "])
def test_version_of_a_module_is_semantic(version: str) -> None:
    with pytest.raises(InvalidRequest, match="not a semantic version"):
        require_semantic_version(version)


@pytest.mark.parametrize("version", ["latest", "", "../x", "a b", "x" * 101, "a/b"])
def test_invalid_version(version: str) -> None:
    with pytest.raises(InvalidRequest):
        require_version(version)

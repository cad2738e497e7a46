"""Protection from old versions: what a machine accepts, and what it remembers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.agent.releases import ReleaseMaker

from cogwork import __version__
from cogwork.agent.errors import BadRelease, BadState, SourceUnavailable
from cogwork.agent.main import main
from cogwork.agent.release.manifest import parse_manifest
from cogwork.agent.release.signature import TrustedKeys
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore, prepare_minimums
from cogwork.agent.slots.state import ProductState, save_state
from cogwork.agent.updates.downgrade import find_refusal
from cogwork.agent.updates.folder_source import FolderSource
from cogwork.core.versions.minimum_version import MINIMUM_VERSIONS
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import is_older

SERVER = Product.SERVER
MINIMUM = Minimum("1.3.0", "1.5.0")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "root")


@pytest.mark.parametrize(
    ("version", "current", "minimum", "is_wanted"),
    [
        ("1.5.0", "1.4.0", MINIMUM, False),
        ("1.5.0", None, MINIMUM, False),
        ("1.3.0", "1.4.0", MINIMUM, True),
        ("1.3.0", None, MINIMUM, False),
        ("0.1.0", "1.4.0", None, True),
        ("1.3.0", "1.2.0", MINIMUM, False),  # after a fallback below the minimum
        ("2.0.0", "built-by-hand", None, False),
    ],
)
def test_accepted_versions(
    version: str, current: str | None, minimum: Minimum | None, is_wanted: bool
) -> None:
    assert find_refusal(SERVER, version, current, minimum, is_wanted=is_wanted) is None


@pytest.mark.parametrize("version", ["1.2.9", "1.3.0rc1", "0.1.0", "nightly"])
@pytest.mark.parametrize("current", ["1.5.0", "1.0.0", None])
@pytest.mark.parametrize("is_wanted", [False, True])
def test_nothing_allows_a_version_below_the_minimum(
    version: str, current: str | None, is_wanted: bool
) -> None:
    refusal = find_refusal(SERVER, version, current, MINIMUM, is_wanted=is_wanted)
    assert refusal is not None
    assert refusal.is_final
    assert "older than 1.3.0, the minimum version that release 1.5.0 has set" in refusal.reason


@pytest.mark.parametrize("minimum", [MINIMUM, None])
def test_older_version_waits_for_a_person(minimum: Minimum | None) -> None:
    refusal = find_refusal(SERVER, "1.4.0", "1.5.0", minimum, is_wanted=False)
    assert refusal is not None
    assert not refusal.is_final
    assert refusal.reason.endswith("cogwork-agent allow server 1.4.0")


def test_highest_minimum_is_kept(layout: Layout) -> None:
    store = MinimumStore(layout.minimums)
    assert store.find(SERVER) is None
    for version in ("1.2.0", "1.10.0", "1.9.0"):
        store.raise_to(SERVER, Minimum(version, "2.0.0"))
    assert MinimumStore(layout.minimums).find(SERVER) == Minimum("1.10.0", "2.0.0")
    assert store.find(Product.AGENT) is None


def test_state_written_by_an_earlier_launcher_does_not_lower_the_minimum(layout: Layout) -> None:
    MinimumStore(layout.minimums).raise_to(SERVER, MINIMUM)
    save_state(layout.state, {product: ProductState() for product in Product})
    assert MinimumStore(layout.minimums).find(SERVER) == MINIMUM


def test_agent_applies_the_minimums_that_it_was_built_with(layout: Layout) -> None:
    store = prepare_minimums(layout, "9.0.0")
    for product in Product:
        found = store.find(product)
        assert (found.version if found else None) == MINIMUM_VERSIONS.get(product)


def test_release_of_this_source_does_not_forbid_itself() -> None:
    assert not any(is_older(__version__, each) for each in MINIMUM_VERSIONS.values())


def test_damaged_minimum_is_replaced_by_the_current_version(layout: Layout) -> None:
    layout.slot(SERVER, "1.4.0").mkdir(parents=True)
    layout.switch(SERVER, "1.4.0")
    store = MinimumStore(layout.minimums)
    store.raise_to(SERVER, MINIMUM)
    layout.minimums.write_bytes(layout.minimums.read_bytes().replace(b"1.3.0", b"0.3.0"))
    with pytest.raises(BadState, match="checksum is wrong; remove it"):
        store.find(SERVER)
    assert prepare_minimums(layout, "9.0.0").find(SERVER) == Minimum("1.4.0", "1.4.0")


def test_release_sets_the_minimum_before_it_is_installed(layout: Layout, tmp_path: Path) -> None:
    releases = ReleaseMaker(tmp_path / "releases")
    installer = Installer(layout, TrustedKeys([releases.key.public_key()]))
    cut = releases.make_server("1.5.0", minimum_version="1.3.0")
    cut.write_bytes(cut.read_bytes()[:-400_000])
    with pytest.raises(BadRelease, match="is not a release"):
        installer.install(cut, lambda _: None)
    with pytest.raises(BadRelease, match=r"server 1\.2\.0 is not installed: it is older than 1"):
        installer.install(releases.make_server("1.2.0"), lambda _: None)
    assert installer.check(releases.make_server("1.3.0")).minimum_version is None
    assert MinimumStore(layout.minimums).find(SERVER) == MINIMUM


def test_manifest_without_a_minimum_reads_as_before(tmp_path: Path) -> None:
    releases = ReleaseMaker(tmp_path)
    keys = TrustedKeys([releases.key.public_key()])
    manifest = Installer(Layout(tmp_path), keys).check(releases.make_server("1.0.0"))
    assert b"minimum_version" not in manifest.encode()
    assert parse_manifest(manifest.encode()) == manifest


@pytest.mark.parametrize(
    ("content", "is_rollback"),
    [
        ('{"server": "1.0.0"}', False),
        ('{"server": "1.0.0", "rollback": true}', True),
        ('{"server": "1.0.0", "rollback": "no"}', False),
    ],
)
async def test_folder_says_whether_machines_go_back(
    tmp_path: Path, content: str, is_rollback: bool
) -> None:
    (tmp_path / "channel.json").write_text(content)
    found = await FolderSource(str(tmp_path)).check({}, ())
    assert found[SERVER].is_rollback is is_rollback


async def test_channel_that_is_not_an_object_is_explained(tmp_path: Path) -> None:
    (tmp_path / "channel.json").write_text('["server"]')
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        await FolderSource(str(tmp_path)).check({}, ())


@pytest.mark.parametrize("minimum", ["1.0.1", "nightly", "", "../1", "1" * 100])
def test_minimum_that_cannot_be_is_refused(tmp_path: Path, minimum: str) -> None:
    releases = ReleaseMaker(tmp_path)
    archive = releases.make(SERVER, "1.0.0", "", minimum_version=minimum)
    with pytest.raises(BadRelease, match="must be this version or an older one"):
        Installer(Layout(tmp_path), TrustedKeys([releases.key.public_key()])).check(archive)


def test_person_cannot_allow_a_version_below_the_minimum(
    layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    MinimumStore(layout.minimums).raise_to(SERVER, MINIMUM)
    root = ["--root", str(layout.root)]
    assert main(["allow", "server", "1.2.0", *root]) == 1
    assert "server 1.2.0 is not allowed: it is older than 1.3.0" in capsys.readouterr().err
    assert main(["allow", "server", "../1", *root]) == 1
    assert not layout.allowed(SERVER).exists()
    assert main(["allow", "server", "1.3.0", *root]) == 0
    assert layout.allowed(SERVER).read_text() == "1.3.0\n"

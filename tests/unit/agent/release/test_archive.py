from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.agent.releases import ReleaseMaker
from tests.support.sizes import size

from cogwork.agent.errors import BadRelease
from cogwork.agent.release.archive import read_manifest, unpack
from cogwork.agent.release.manifest import find_version, parse_manifest
from cogwork.agent.release.signature import TrustedKeys
from cogwork.core.versions.product import Product

MUTATIONS = size(ci=200, full=5000)


@pytest.fixture
def releases(tmp_path: Path) -> ReleaseMaker:
    made = ReleaseMaker(tmp_path / "releases")
    made.use_quick_pip()
    return made


@pytest.fixture
def keys(releases: ReleaseMaker) -> TrustedKeys:
    return TrustedKeys([releases.key.public_key()])


def test_release_is_unpacked_as_it_was_packed(
    releases: ReleaseMaker, keys: TrustedKeys, tmp_path: Path
) -> None:
    archive = releases.make(Product.SERVER, "1.0.0", "print('hello')")
    manifest = unpack(archive, keys, tmp_path)
    assert manifest == read_manifest(archive, keys)
    assert (manifest.product, manifest.version) == (Product.SERVER, "1.0.0")
    assert all((tmp_path / name).stat().st_size == e.size for name, e in manifest.files.items())


def test_other_keys_are_not_trusted(releases: ReleaseMaker) -> None:
    archive = releases.make(Product.SERVER, "1.0.0", "")
    others = TrustedKeys([Ed25519PrivateKey.generate().public_key()])
    for keys in (others, TrustedKeys([])):
        with pytest.raises(BadRelease, match="not signed by a key"):
            read_manifest(archive, keys)


def test_any_changed_byte_is_noticed(
    releases: ReleaseMaker, keys: TrustedKeys, tmp_path: Path
) -> None:
    """Or it is in padding, and what is unpacked is the same."""
    archive = releases.make(Product.SERVER, "1.0.0", "print('hello')")
    original, rng = archive.read_bytes(), random.Random(8)
    manifest = read_manifest(archive, keys)
    refused = 0
    for number in range(MUTATIONS):
        data = bytearray(original)
        place = rng.choice((rng.randrange(len(data)), rng.randrange(6000)))
        data[place] ^= rng.randint(1, 255)
        archive.write_bytes(data)
        directory = tmp_path / str(number)
        directory.mkdir()
        try:
            assert unpack(archive, keys, directory) == manifest
        except BadRelease:
            refused += 1
    print(f"{MUTATIONS} mutations, {refused} refused")
    assert refused > MUTATIONS / 3


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "wheels/../../evil", "extra.txt"])
def test_files_that_are_not_listed_are_refused(
    releases: ReleaseMaker, keys: TrustedKeys, tmp_path: Path, name: str
) -> None:
    archive = releases.make(Product.SERVER, "1.0.0", "")
    with tarfile.open(archive, "a") as tar:
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(BadRelease, match="does not list"):
        unpack(archive, keys, tmp_path)


def test_links_and_repeated_files_are_refused(
    releases: ReleaseMaker, keys: TrustedKeys, tmp_path: Path
) -> None:
    archive = releases.make(Product.SERVER, "1.0.0", "")
    with tarfile.open(archive, "a") as tar:
        link = tarfile.TarInfo("requirements.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(BadRelease):
        unpack(archive, keys, tmp_path)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_header_of_any_size_is_not_read(keys: TrustedKeys, tmp_path: Path, kind: bytes) -> None:
    archive = tmp_path / "release.tar"
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 40
    archive.write_bytes(
        header.tobuf(tarfile.USTAR_FORMAT)
        if header.size < 8**11
        else header.tobuf(tarfile.GNU_FORMAT)
    )
    with pytest.raises(BadRelease, match="not a file"):
        read_manifest(archive, keys)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("cogwork-server-1.5.0-linux-amd64.tar", "1.5.0"),
        ("cogwork-server-1.5.0-rc.1-linux-amd64.tar", "1.5.0-rc.1"),
        ("cogwork-agent-1.5.0-linux-amd64.tar", None),
        ("cogwork-server-1.5.0-linux-arm64.tar", None),
        ("cogwork-server--linux-amd64.tar", None),
        ("cogwork-server-../x-linux-amd64.tar", None),
        ("", None),
    ],
)
def test_version_in_the_name_of_a_release(name: str, version: str | None) -> None:
    assert find_version(name, Product.SERVER, "linux/amd64") == version


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 2}',
        b'{"format": 1, "product": "toaster"}',
        b'{"format": 1, "product": "server", "version": "../x", "platform": "linux/amd64", '
        b'"python": "3.11", "installed_size": 1, "files": {}}',
        b'{"format": 1, "product": "server", "version": "1", "platform": "linux/amd64", '
        b'"python": "3.11", "installed_size": true, "files": {}}',
        b'{"format": 1, "product": "server", "version": "1", "platform": "linux/amd64", '
        b'"python": "3.11", "installed_size": 1, "files": {"../x": {"size": 1, "sha256": "0"}}}',
        b"[" * 100_000,
    ],
)
def test_manifest_that_is_not_valid_is_refused(data: bytes) -> None:
    with pytest.raises(BadRelease):
        parse_manifest(data)

"""Release archives: tar files with a manifest, its signature and the files of the release.

The manifest and its signature come first. No other file is read before the signature is verified.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from cogwork.agent.errors import BadRelease
from cogwork.agent.release.manifest import MAX_MANIFEST, FileEntry, ReleaseManifest, parse_manifest
from cogwork.agent.release.signature import SIGNATURE_SIZE, TrustedKeys

_MANIFEST: Final = "manifest.json"
_SIGNATURE: Final = "manifest.sig"
_CHUNK: Final = 1 << 20


def read_manifest(archive: Path, keys: TrustedKeys) -> ReleaseManifest:
    """Return the verified manifest. Do not read the other files. Raise BadRelease or OSError."""
    with _open(archive) as tar:
        return _verify_manifest(tar, keys)


def unpack(archive: Path, keys: TrustedKeys, directory: Path) -> ReleaseManifest:
    """Write the files of a release into an empty directory, and verify their hashes.

    Raise BadRelease or OSError; the directory may then contain some of the files.
    """
    with _open(archive) as tar:
        manifest = _verify_manifest(tar, keys)
        missing = dict(manifest.files)
        while (member := tar.next()) is not None:
            entry = missing.pop(member.name, None)
            if entry is None or member.size != entry.size:
                raise BadRelease(
                    f'the manifest of the release does not list "{member.name}" with this size'
                )
            content = tar.extractfile(member)
            assert content is not None
            _write_verified(content, directory / member.name, entry)
    if missing:
        raise BadRelease(f"the release is not complete: {min(missing)} is missing")
    return manifest


def write_archive(
    path: Path, manifest: ReleaseManifest, signature: bytes, files: Mapping[str, Path], time: int
) -> None:
    """Write an archive whose bytes depend only on the arguments and the contents of the files."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in ((_MANIFEST, manifest.encode()), (_SIGNATURE, signature)):
            tar.addfile(_describe(name, len(data), time), io.BytesIO(data))
        for name in sorted(files):
            with files[name].open("rb") as file:
                tar.addfile(_describe(name, manifest.files[name].size, time), file)


@contextmanager
def _open(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive, "r|", tarinfo=_RegularMember) as tar:
            yield tar
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError) as error:
        raise BadRelease(f"{archive.name} is not a release: {error}") from None


class _RegularMember(tarfile.TarInfo):
    """A member of the archive that is a file. Other kinds of members are refused before their
    content is read.

    Some of them are headers of any size, which `tarfile` would load into memory.
    """

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise BadRelease(f'the release has a member that is not a file: "{self.name}"')
        found: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return found


def _verify_manifest(tar: tarfile.TarFile, keys: TrustedKeys) -> ReleaseManifest:
    manifest = _read_small(tar, _MANIFEST, MAX_MANIFEST)
    keys.verify(manifest, _read_small(tar, _SIGNATURE, SIGNATURE_SIZE))
    return parse_manifest(manifest)


def _read_small(tar: tarfile.TarFile, name: str, limit: int) -> bytes:
    member = tar.next()
    if member is None or member.name != name or member.size > limit:
        raise BadRelease(f"the release is not valid: {name} is missing, misplaced or too large")
    content = tar.extractfile(member)
    assert content is not None
    return content.read()


def _write_verified(content: IO[bytes], path: Path, entry: FileEntry) -> None:
    digest = hashlib.sha256()
    path.parent.mkdir(0o700, exist_ok=True)
    path.touch(0o600, exist_ok=False)  # regardless of the umask, only this user may write
    with path.open("wb") as file:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != entry.sha256:
        path.unlink()
        raise BadRelease(
            f"{path.name} of the release is damaged: its hash differs from the manifest"
        )


def _describe(name: str, size: int, time: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, time, 0o644
    return info

"""Archives for tests."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path


def make_archive(**files: bytes) -> bytes:
    """Return a .tar.gz with files by their names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def make_link_archive(target: str) -> bytes:
    """Return a .tar.gz with a symbolic link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, target
        archive.addfile(member)
    return packed.getvalue()


def write_release(
    directory: Path,
    version: str,
    product: str = "server",
    platform: str = "linux/amd64",
    content: bytes = b"wheel",
    minimum_version: str = "",
    signature: bytes | None = bytes(64),
) -> Path:
    """Write the archive of a release with an invalid signature, and return its path."""
    manifest = {"product": product, "version": version, "platform": platform}
    if minimum_version:
        manifest["minimum_version"] = minimum_version
    path = directory / f"cogwork-{product}-{version}-{platform.replace('/', '-')}.tar"
    with tarfile.open(path, "w") as archive:
        members = {
            "manifest.json": json.dumps(manifest).encode(),
            **({"manifest.sig": signature} if signature is not None else {}),
            "a.whl": content,
        }
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path

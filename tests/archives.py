"""Archives for tests."""

from __future__ import annotations

import io
import tarfile


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

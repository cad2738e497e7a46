"""Check an archive without unpacking it."""

from __future__ import annotations

from cogwork.archives.limits import ArchiveLimits, check_count, too_many_directories
from cogwork.archives.member_path import check_target, repeated_entry, split_path
from cogwork.archives.metered_reader import MeteredReader
from cogwork.archives.tar import MemberKind, ReadBytes, TarReader


def check(
    read: ReadBytes,
    packed_size: int,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Read an archive to its end without unpacking it. Raise BadArchive if a check fails.

    The arguments are the same as for `extract`. An archive that passes may still be refused by
    `extract`, because some contradictions between entries are only found while creating the files.
    """
    meter = MeteredReader(read, packed_size, limits)
    seen, directories = set[int](), _DirectoryCount(limits)
    for count, member in enumerate(TarReader(meter.read), 1):
        check_count(count, limits)
        path = split_path(member.path, limits)
        directories.add(path if member.kind is MemberKind.DIRECTORY else path[:-1])
        if limits.is_strict and member.kind is not MemberKind.DIRECTORY:
            # Store hashes, because they need less memory than paths.
            if (key := hash("/".join(path))) in seen:
                raise repeated_entry(path)
            seen.add(key)
        if member.kind is MemberKind.SYMLINK:
            check_target(path, member.target, limits)
        elif member.kind is MemberKind.HARDLINK:
            split_path(member.target, limits)
    meter.read_to_end()


class _DirectoryCount:
    """Counts the directories that paths name, without creating them."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._seen = set[int]()
        self._last: tuple[str, ...] = ()

    def add(self, path: tuple[str, ...]) -> None:
        if path == self._last:
            return
        self._last = path
        for depth in range(1, len(path) + 1):
            self._seen.add(hash("/".join(path[:depth])))
        if len(self._seen) > self._limits.directories:
            raise too_many_directories(self._limits)

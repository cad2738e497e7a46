"""`cogwork copy` as a person runs it, against the real executable."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.machine.commands import CommandResult, read_tree, run_command, shell_service
from tests.support.machine.running import run_server

SUMMARY = re.compile(r"(\d+) files?, (\d+\.\d) MB in \d+\.\d s\n")


class CopySides(NamedTuple):
    address: str
    here: Path
    there: Path

    async def copy(self, *arguments: str) -> CommandResult:
        """Copy with `near/` for the local directory and `far/` for the machine."""
        written = [each.replace("near/", f"{self.here}/") for each in arguments]
        written = [each.replace("far/", "machine:") for each in written]
        return await run_command("copy", *written, "--address", self.address)


@pytest.fixture
async def sides(tmp_path: Path) -> AsyncIterator[CopySides]:
    here, there = tmp_path / "h", tmp_path / "t"
    here.mkdir()
    there.mkdir()
    async with run_server({"services": [shell_service(there)]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        yield CopySides(f"localhost:{server.port}", here, there)


async def test_file_is_copied_to_the_machine_and_back(sides: CopySides) -> None:
    data = os.urandom(20_000_001)
    (sides.here / "file").write_bytes(data)
    to = await sides.copy("near/file", "far/arrived")
    assert (to.code, to.err) == (0, "")
    assert (words := SUMMARY.fullmatch(to.out)) is not None
    assert words.groups() == ("1", "20.0")
    assert read_tree(sides.there) == {"arrived": data}
    back = await sides.copy("far/arrived", "near/back")
    assert (back.code, back.err) == (0, "")
    assert (sides.here / "back").read_bytes() == data


async def test_directory_is_copied_to_the_machine_and_back(sides: CopySides) -> None:
    source = sides.here / "tree"
    (source / "deep/empty").mkdir(parents=True)
    (source / "deep/file").write_bytes(b"x")
    (source / "script").write_bytes(b"#!/bin/sh\n")
    (source / "script").chmod(0o755)
    (source / "link").symlink_to("/etc/passwd")
    os.utime(source / "deep", ns=(0, 1_000_000_000_000_000_000))
    to = await sides.copy("-r", "-p", "near/tree", "far/")
    assert to.code == 0
    assert to.err == (
        f"skipped {source}/link: it is not a regular file, or is a link to a file outside the "
        "directory\n"
    )
    assert to.out.startswith("2 files, ")
    (source / "link").unlink()
    assert read_tree(sides.there / "tree") == read_tree(source)
    back = await sides.copy("-r", "-p", "far/tree", "near/back")
    assert (back.code, back.err) == (0, "")
    assert read_tree(sides.here / "back") == read_tree(source)
    assert stat.S_IMODE((sides.here / "back/script").stat().st_mode) == 0o755
    assert (sides.here / "back/deep").stat().st_mtime == 1_000_000_000


async def test_several_files_are_copied(sides: CopySides) -> None:
    (sides.here / "a").write_text("1")
    (sides.here / "b").write_text("2")
    assert (await sides.copy("near/a", "near/b", "far/")).code == 0
    assert read_tree(sides.there) == {"a": b"1", "b": b"2"}
    (sides.here / "to").mkdir()
    assert (await sides.copy("far/a", "far/b", "near/to")).code == 0
    assert read_tree(sides.here / "to") == {"a": b"1", "b": b"2"}


REFUSED: list[tuple[list[str], int, str]] = [
    (["near/tree", "far/"], 1, ".*/tree is a directory; copy it recursively"),
    (["far/", "near/"], 1, "INVALID_ARGUMENT: one of the paths is empty"),
    (["near/nothing", "far/"], 2, "cannot read .*/nothing: No such file or directory"),
    (["far/nothing", "near/"], 1, "NOT_FOUND: cannot read .*/nothing: No such file"),
    (["near/file", "far/no/where"], 1, "NOT_FOUND: .*/no does not exist"),
    (["far/file", "near/no/where"], 1, ".*/no does not exist"),
    (["near/file", "near/other"], 2, "copy either to or from the machine"),
    (["far/file", "far/other"], 2, "copy either to or from the machine"),
    (["near/file", "far/file", "near/"], 2, "copy either to or from the machine"),
    (["--name", "x", "near/file", "far/"], 2, 'the machine has no shell "x"; it has sh'),
]


async def test_invalid_copies_are_refused(sides: CopySides) -> None:
    (sides.here / "tree").mkdir()
    (sides.here / "file").touch()
    (sides.there / "file").touch()
    for arguments, code, words in REFUSED:
        told = await sides.copy(*arguments)
        assert (told.code, told.out) == (code, ""), arguments
        assert re.match(words, told.err), told.err


async def test_unreadable_file_leaves_no_partial_copy(sides: CopySides) -> None:
    tree_of_two = sides.here / "tree"
    tree_of_two.mkdir()
    (tree_of_two / "a").write_text("1")
    os.mkfifo(sides.here / "pipe")
    told = await sides.copy("-r", "near/tree", "near/pipe", "far/")
    assert told.code == 1
    assert told.err.endswith("it is neither a file nor a directory\n")
    assert read_tree(sides.there) == {"tree": None, "tree/a": b"1"}

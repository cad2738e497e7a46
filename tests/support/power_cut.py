"""Power cuts: a disk that stops at a system call, and loses what was not synced."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock


class PowerCut(BaseException):
    """The power is off: whatever still runs cannot change the disk any more."""


@dataclass
class Effect:
    """Something that is lost in a power cut before it is synced."""

    place: str
    """The directory whose entries it changes, or the file whose content it changes."""
    undo: Callable[[], None]


class Disk:
    """Counts the system calls that change the disk. The power is cut before the chosen one."""

    def __init__(self, backups: Path, cut_at: int, rng: random.Random) -> None:
        """`backups` is an empty directory beside what is changed."""
        self._backups = backups
        self._cut_at = cut_at
        self._rng = rng
        self._effects: list[Effect] = []
        self._paths: dict[int, str] = {}
        """Of open descriptors."""
        self._duplicates: list[int] = []
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self.calls = 0
        self.is_off = False

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name in (
                *("open", "write", "fsync", "replace", "rename", "symlink"),
                *("unlink", "mkdir", "sync"),
            ):
                original = getattr(os, name)
                replaced = self._wrap(getattr(self, f"_{name}"), original)
                stack.enter_context(mock.patch.object(os, name, replaced))
            try:
                yield
            finally:
                for descriptor in self._duplicates:
                    os.close(descriptor)
                for each in self._backups.iterdir():
                    _originals["unlink"](each)

    def _wrap(self, act: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                if self.is_off:
                    raise PowerCut
                return act(original, *arguments, **options)

        return call

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self._cut_at:
            self._cut()
            raise PowerCut

    def _cut(self) -> None:
        """Lose some of what was not synced: of each directory and file, the last effects."""
        self.is_off = True
        lost = []
        for place in {each.place for each in self._effects}:
            found = [each for each in self._effects if each.place == place]
            lost += found[self._rng.randint(0, len(found)) :]
        for effect in reversed([each for each in self._effects if each in lost]):
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                effect.undo()

    def _synced(self, place: str) -> None:
        self._effects = [each for each in self._effects if each.place != place]

    def _note(self, place: str, undo: Callable[[], None]) -> None:
        self._effects.append(Effect(place, undo))

    def _open(self, original: Any, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        creates = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        if creates:
            self._count()
        descriptor: int = original(path, flags, *rest, **options)
        self._paths[descriptor] = os.fspath(path)
        if creates:
            unlink = _originals["unlink"]
            self._note(_parent(path), lambda: unlink(path))
        return descriptor

    def _write(self, original: Any, descriptor: int, data: Any) -> int:
        if descriptor not in self._paths:
            return int(original(descriptor, data))  # not a file of the disk
        self._count()
        before = os.fstat(descriptor).st_size
        written = int(original(descriptor, data))
        same_file = os.dup(descriptor)
        self._duplicates.append(same_file)
        kept = self._rng.randint(before, before + written)
        self._note(self._paths[descriptor], lambda: os.ftruncate(same_file, kept))
        return written

    def _fsync(self, original: Any, descriptor: int) -> None:
        self._count()
        original(descriptor)
        self._synced(self._paths.get(descriptor, ""))

    def _sync(self, original: Any) -> None:
        self._count()
        original()
        self._effects.clear()

    def _replace(self, original: Any, source: Any, target: Any) -> None:
        self._count()
        backup = self._back_up(target)
        original(source, target)

        def undo() -> None:
            original(target, source)
            if backup is not None:
                original(backup, target)

        self._note(_parent(target), undo)
        # Its content keeps its effects under the new name.
        for effect in self._effects:
            if effect.place == os.fspath(source):
                effect.place = os.fspath(target)

    _rename = _replace

    def _symlink(self, original: Any, target: Any, path: Any, *rest: Any, **options: Any) -> None:
        self._count()
        original(target, path, *rest, **options)
        unlink = _originals["unlink"]
        self._note(_parent(path), lambda: unlink(path))

    def _unlink(self, original: Any, path: Any, *rest: Any, **options: Any) -> None:
        if not os.path.lexists(path):
            original(path, *rest, **options)  # which raises
        self._count()
        backup = self._back_up(path)
        original(path, *rest, **options)
        replace = _originals["replace"]
        if backup is not None:
            self._note(_parent(path), lambda: replace(backup, path))

    def _mkdir(self, original: Any, path: Any, *rest: Any, **options: Any) -> None:
        self._count()
        original(path, *rest, **options)
        self._note(_parent(path), Path(path).rmdir)

    def _back_up(self, path: Any) -> Path | None:
        """Return another name of a file or link, under which it survives its replacement."""
        if not os.path.lexists(path) or (Path(path).is_dir() and not Path(path).is_symlink()):
            return None
        backup = self._backups / str(next(self._numbers))
        os.link(path, backup, follow_symlinks=False)
        return backup


_originals = {name: getattr(os, name) for name in ("unlink", "replace")}


def _parent(path: Any) -> str:
    return os.fspath(Path(path).parent)

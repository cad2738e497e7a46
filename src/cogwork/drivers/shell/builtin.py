"""A shell on this computer and file copies, with the permissions of the server's user."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from viam.resource.types import API, RESOURCE_NAMESPACE_RDK, RESOURCE_TYPE_SERVICE
from viam.services.service_base import ServiceBase

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.files.atomic import make_directory
from cogwork.core.os_error_text import os_reason
from cogwork.core.paths import cogwork_home
from cogwork.core.workers import Workers, run_in_thread
from cogwork.drivers.shell.attributes import BuiltinShellAttributes
from cogwork.drivers.shell.file_copy import SourceType
from cogwork.drivers.shell.terminal import PtyTerminal
from cogwork.drivers.shell.threaded_copy import ThreadedReceiver, ThreadedSender
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_HOME_VARIABLE = "VIAM_HOME"
"""The name under which clients look up the server's state directory."""
_BUILDS = "packages-local"
"""The folder in the state directory for development builds of modules. The command-line client
copies builds into it and expects it to exist."""
_DISK_TIMEOUT = 10.0
_TERM = "xterm-256color"
_MAX_CONCURRENT_STARTS = 2
_START_INTERVAL = 0.05
"""Seconds from the start of a shell until its start slot is free again. Without this delay, many
starts in a row would slow down all clients."""


class NoShell(CogworkError):
    """The shell cannot be started."""

    status = "FAILED_PRECONDITION"


class BuiltinShell(ServiceBase):
    API: ClassVar[API] = API(RESOURCE_NAMESPACE_RDK, RESOURCE_TYPE_SERVICE, "shell")

    def __init__(self, name: ResourceName, attributes: BuiltinShellAttributes) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._log = logger_of(name)
        self._program = attributes.shell or os.environ.get("SHELL") or "/bin/sh"
        self._directory = Path(attributes.directory or "~").expanduser()
        self._terminals: set[PtyTerminal] = set()
        self._start_slots = asyncio.Semaphore(_MAX_CONCURRENT_STARTS)
        self._workers = Workers("shell", threads=_MAX_CONCURRENT_STARTS)
        self._copies = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinShellAttributes,
        dependencies: Dependencies,
    ) -> BuiltinShell:
        del dependencies
        shell = cls(name, attributes)
        await asyncio.to_thread(shell.check)
        return shell

    def check(self) -> None:
        if shutil.which(self._program) is None:
            raise NoShell(f'"{self._program}" is not an executable program; correct "shell"')
        if not self._directory.is_dir():
            raise NoShell(f'{self._directory} is not a directory; correct "directory"')

    async def open_terminal(self) -> PtyTerminal:
        await self._start_slots.acquire()
        self._log.info("starting a shell")
        try:
            terminal = await PtyTerminal.start(
                self._workers,
                (self._program, "-i"),
                self._directory,
                {**os.environ, "TERM": _TERM},
                self._terminals.discard,
            )
        except OSError as error:
            raise NoShell(f"{self._program} cannot be started: {os_reason(error)}") from error
        finally:
            asyncio.get_running_loop().call_later(_START_INTERVAL, self._start_slots.release)
        self._terminals.add(terminal)
        return terminal

    async def receive_files(
        self,
        destination: str,
        source_type: SourceType,
        *,
        preserve: bool,
    ) -> ThreadedReceiver:
        self._copies += 1
        path = self._resolve_path(destination)
        self._log.info("receiving files into %s", path)
        builds = cogwork_home(os.environ) / _BUILDS
        if builds in (path, path.parent):
            await run_in_thread(f"make {builds}", _DISK_TIMEOUT, make_directory, builds, 0o750)
        return await ThreadedReceiver.open(path, source_type, preserve=preserve)

    async def send_files(
        self, paths: Sequence[str], *, recursive: bool, preserve: bool
    ) -> ThreadedSender:
        self._copies += 1
        if not all(paths):
            raise InvalidRequest("one of the paths is empty")
        sources = [self._resolve_path(path) for path in paths]
        self._log.info("sending files from %s", ", ".join(map(str, sources)))
        return await ThreadedSender.open(
            sources, recursive=recursive, preserve=preserve, on_skipped=self._log_skipped
        )

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Return the state directory of the server, whatever the command is.

        The Go command-line client reads the value of `viam_home`.
        """
        del command
        return dict.fromkeys((_HOME_VARIABLE, "viam_home"), str(cogwork_home(os.environ)))

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "shell": self._program,
            "directory": str(self._directory),
            "open": len(self._terminals),
            "copies": self._copies,
        }

    async def close(self) -> None:
        self._workers.close()
        await asyncio.gather(*(terminal.aclose() for terminal in tuple(self._terminals)))

    def _resolve_path(self, text: str) -> Path:
        """Resolve a client's path relative to the shell's directory or to a home directory."""
        if "\0" in text:
            raise InvalidRequest("a path must not contain a null byte")
        if text == f"${_HOME_VARIABLE}" or text.startswith(f"${_HOME_VARIABLE}/"):
            return cogwork_home(os.environ) / text.removeprefix(f"${_HOME_VARIABLE}").lstrip("/")
        try:
            return self._directory / Path(text).expanduser()
        except RuntimeError as error:
            raise InvalidRequest(f"{text}: {error}") from error

    def _log_skipped(self, skipped: Sequence[str]) -> None:
        if skipped:
            self._log.warning(
                "skipped at least %d entries (special files, unsuitable links, names that are not "
                "text): %s",
                len(skipped),
                ", ".join(skipped[:5]),
            )


class RefusedShell:
    """The shell of untrusted configurations, which always fails to build."""

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinShellAttributes,
        dependencies: Dependencies,
    ) -> RefusedShell:
        del name, attributes, dependencies
        raise NoShell(
            "shells are disabled because the server was started with -untrusted-env; start it "
            "without that option, or remove the shell from the configuration"
        )

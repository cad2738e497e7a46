"""A shell of this computer, for people and for files. It may do whatever the server's user may."""

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
from cogwork.core.home import cogwork_home
from cogwork.drivers.shell.aside import IncomingAside, OutgoingAside
from cogwork.drivers.shell.attributes import BuiltinShellAttributes
from cogwork.drivers.shell.files import SourceType
from cogwork.drivers.shell.terminal import Terminal
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_HOME = "VIAM_HOME"
"""What clients call the directory where the server keeps its state."""
_KIND = "xterm-256color"


class NoShell(CogworkError):
    """A shell that cannot be started."""

    status = "FAILED_PRECONDITION"


class BuiltinShell(ServiceBase):
    API: ClassVar[API] = API(RESOURCE_NAMESPACE_RDK, RESOURCE_TYPE_SERVICE, "shell")

    def __init__(self, name: ResourceName, attributes: BuiltinShellAttributes) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._log = logger_of(name)
        self._program = attributes.shell or os.environ.get("SHELL") or "/bin/sh"
        self._directory = Path(attributes.directory or "~").expanduser()
        self._terminals: set[Terminal] = set()
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
            raise NoShell(f'"{self._program}" is no program that can be run; correct "shell"')
        if not self._directory.is_dir():
            raise NoShell(f'{self._directory} is no directory; correct "directory"')

    async def terminal(self) -> Terminal:
        self._log.info("a shell begins")
        try:
            terminal = await Terminal.start(
                (self._program, "-i"),
                self._directory,
                {**os.environ, "TERM": _KIND},
                self._terminals.discard,
            )
        except OSError as error:
            raise NoShell(f"{self._program} cannot be started: {error.strerror}") from error
        self._terminals.add(terminal)
        return terminal

    async def incoming(
        self,
        destination: str,
        source_type: SourceType,
        *,
        preserve: bool,
    ) -> IncomingAside:
        self._copies += 1
        path = self._path(destination)
        self._log.info("files come to %s", path)
        return await IncomingAside.open(path, source_type, preserve=preserve)

    async def outgoing(
        self, paths: Sequence[str], *, recursive: bool, preserve: bool
    ) -> OutgoingAside:
        self._copies += 1
        if not all(paths):
            raise InvalidRequest("one of the paths is empty")
        sources = [self._path(path) for path in paths]
        self._log.info("files go from %s", ", ".join(map(str, sources)))
        return await OutgoingAside.open(
            sources, recursive=recursive, preserve=preserve, tell=self._tell_left_out
        )

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Clients ask where they find what the server writes."""
        del command
        return {_HOME: str(cogwork_home(os.environ))}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "shell": self._program,
            "directory": str(self._directory),
            "open": len(self._terminals),
            "copies": self._copies,
        }

    async def close(self) -> None:
        await asyncio.gather(*(terminal.aclose() for terminal in tuple(self._terminals)))

    def _path(self, text: str) -> Path:
        """As clients write them: relative to where the shell starts, or to a home directory."""
        if "\0" in text:
            raise InvalidRequest("a path has no zero byte in it")
        if text == f"${_HOME}" or text.startswith(f"${_HOME}/"):
            return cogwork_home(os.environ) / text.removeprefix(f"${_HOME}").lstrip("/")
        try:
            return self._directory / Path(text).expanduser()
        except RuntimeError as error:
            raise InvalidRequest(f"{text}: {error}") from error

    def _tell_left_out(self, left_out: Sequence[str]) -> None:
        if left_out:
            self._log.warning(
                "%d were not copied, for they are links that lead elsewhere or no files: %s",
                len(left_out),
                ", ".join(left_out[:5]),
            )


class RefusedShell:
    """What stands in the place of the shell where nobody may have one."""

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinShellAttributes,
        dependencies: Dependencies,
    ) -> RefusedShell:
        del name, attributes, dependencies
        raise NoShell(
            "shells are off, for the server was started with -untrusted-env; start it without, or "
            "remove the shell from the configuration"
        )

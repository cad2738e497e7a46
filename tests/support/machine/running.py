"""The real executable, for tests that need all of it: started, observed and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import poll, run_others

from cogwork.core.files import atomic

Config = Mapping[str, Any]

DEADLINE = 60.0
"""Seconds that starting, stopping or saying something may take."""

SERVING = re.compile(
    r'serving\W*{"url":\W*"(https?://[^"]+)".*"alt_url":\W*"(https?://[^"]+)"}', re.ASCII
)
"""What supervisors look for."""

PROGRAM = (sys.executable, "-m", "cogwork.server.main")
"""The server of this environment."""

_LONGEST_LINE = 1 << 24


@dataclass
class Output:
    """The lines of one stream, as they arrive."""

    lines: list[str] = field(default_factory=list)
    ended: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def follow(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
            self._notify()
        self.ended = True
        self._notify()

    async def wait_for(
        self, pattern: str, since: int = 0, within: float = DEADLINE
    ) -> re.Match[str]:
        """Wait for the first match in a line from number `since` on."""
        wanted, at = re.compile(pattern), since
        try:
            async with asyncio.timeout(within):
                while True:
                    for line in self.lines[at:]:
                        at += 1
                        if found := wanted.search(line):
                            return found
                    assert not self.ended, f"it ended without {pattern!r}:\n{self.text}"
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"no {pattern!r} within {within:g} s:\n{self.text}") from None

    def _notify(self) -> None:
        self._news.set()


@dataclass
class Server:
    process: asyncio.subprocess.Process
    file: Path
    out: Output
    """Its log, and the line that says where it serves."""
    err: Output
    url: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def output(self) -> str:
        return f"{self.out.text}\n{self.err.text}"

    def save(self, config: Config | str) -> None:
        save(self.file, config)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def wait_until_serving(self, within: float = DEADLINE) -> None:
        self.url = (await self.out.wait_for(SERVING.pattern, within=within))[1]

    async def exit_code(self, within: float = DEADLINE) -> int:
        try:
            return await asyncio.wait_for(self.process.wait(), within)
        except TimeoutError:
            raise AssertionError(f"it still runs after {within:g} s:\n{self.output}") from None

    async def get(self, path: str, host: str | None = None) -> tuple[int, str]:
        """Return the status and the body of an HTTP/1.1 answer."""
        return await http_get(host or "localhost", self.port, path)

    async def status(self) -> Any:
        return json.loads((await self.get("/status.json"))[1])

    async def wait_for_status(self, **wanted: Any) -> Any:
        """Wait until these fields of the machine's status have these values, and return it."""

        def is_wanted(status: Any) -> bool:
            return all(status[key] == value for key, value in wanted.items())

        return await poll(self.status, is_wanted)


def save(file: Path, config: Config | str) -> None:
    atomic.write(file, (config if isinstance(config, str) else json.dumps(config)).encode())


def with_free_port(config: Config) -> Config:
    """Use a free port, unless the configuration has an address."""
    network = {"bind_address": "localhost:0", **config.get("network", {})}
    return {**config, "network": network}


@contextlib.asynccontextmanager
async def run_server(
    config: Config | str,
    directory: Path,
    *,
    exits: int | None = 0,
    serves: bool = True,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
    arguments: Sequence[str] = (),
) -> AsyncIterator[Server]:
    """A server whose home and file are in the directory, with the file as given.

    When it is not over by itself it is asked to stop, and must exit with the code; None: any.
    """
    file = directory / "machine.json"
    save(file, config if isinstance(config, str) else with_free_port(config))
    around = {"COGWORK_HOME": str(directory / "home"), **(environment or {})}
    async with start_server(["-config", str(file), *arguments], around, program=program) as server:
        server.file = file
        if serves:
            await server.wait_until_serving()
        yield server
        if server.process.returncode is None:
            server.signal(signal.SIGTERM)
        code = await server.exit_code()
        assert exits is None or code == exits, f"exit code {code}:\n{server.output}"


@contextlib.asynccontextmanager
async def start_server(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    out: int = asyncio.subprocess.PIPE,
    program: Sequence[str] = PROGRAM,
) -> AsyncIterator[Server]:
    """Start only the process, and kill it at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=out,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        limit=_LONGEST_LINE,
    )
    server = Server(process, Path(), Output(), Output())
    readers = [*_follow((server.out, process.stdout), (server.err, process.stderr))]
    try:
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await asyncio.gather(*readers)
        # Its transport closes its pipes one iteration of the loop later.
        await run_others()


def _follow(
    *streams: tuple[Output, asyncio.StreamReader | None],
) -> Iterable[asyncio.Task[None]]:
    for output, stream in streams:
        if stream is not None:
            yield asyncio.get_running_loop().create_task(output.follow(stream))


async def http_get(host: str, port: int, path: str) -> tuple[int, str]:
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            answer = (await reader.read()).decode()
        finally:
            writer.close()
            await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


def plug_in(directory: Path, source: str, *entry_points: str) -> dict[str, str]:
    """An installed package with these lines under `cogwork.models`, as an environment to run in.

    `{module}` in a line stands for the name of its module.
    """
    module = "tests_plug_in"
    information = directory / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (directory / f"{module}.py").write_text(source)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [line.format(module=module) for line in entry_points]
    (information / "entry_points.txt").write_text("\n".join(["[cogwork.models]", *lines, ""]))
    beside = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(directory), *beside]))}

"""The running agent, which owns all its tasks."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
from pathlib import Path
from typing import Any, Final

from cogwork import __version__
from cogwork.agent.errors import AgentRunning
from cogwork.agent.installation.units import DATA
from cogwork.agent.launcher import ALIVE_INTERVAL, EXIT_UPDATED
from cogwork.agent.release.signature import TrustedKeys
from cogwork.agent.settings import AgentSettings
from cogwork.agent.slots.disk import remove_unfinished
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import prepare_minimums
from cogwork.agent.slots.store import StateStore
from cogwork.agent.supervision.child_server import ChildServer
from cogwork.agent.supervision.health import HealthRules
from cogwork.agent.supervision.probe import ServerProbe
from cogwork.agent.supervision.server_process import ServerProcess
from cogwork.agent.supervision.supervisor import Supervisor
from cogwork.agent.supervision.systemd_server import (
    SERVICE,
    SERVING_FILE,
    UNITS,
    SystemdServer,
)
from cogwork.agent.updates.folder_source import FolderSource
from cogwork.agent.updates.progress import UpdateProgress
from cogwork.agent.updates.source import UpdateSource
from cogwork.agent.updates.updater import Updater
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import Clock
from cogwork.core.paths import cogwork_home
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import PROGRESS_VARIABLE
from cogwork.systemd.systemctl import RUNNING, Systemctl

EXIT_OK: Final = 0
_SERVING_VARIABLE: Final = "COGWORK_SERVING_FILE"
"""An environment variable for the server: the path of the file to which the server writes its
address."""

_ACCEPT_AFTER: Final = 60.0
"""Seconds until a new version of the agent is accepted, if it can check for updates."""
_ACCEPT_ANYWAY: Final = 600.0
"""Seconds until a new version of the agent is accepted even if it cannot check for updates, because
there may be no network."""

_log = logging.getLogger("agent")


class Agent:
    def __init__(self, layout: Layout, settings: AgentSettings, clock: Clock) -> None:
        """Create the agent. Raise BadSettings."""
        self._layout = layout
        self._clock = clock
        remove_unfinished(layout)
        self._states = StateStore(layout)
        server, probe = _find_server(layout, settings)
        rules = HealthRules(start_timeout=settings.start_timeout, interval=settings.probe_interval)
        self._supervisor = Supervisor(layout, self._states, server, probe, clock, rules)
        self._source: UpdateSource = _make_source(settings)
        self._updater = Updater(
            layout,
            self._states,
            self._source,
            Installer(layout, TrustedKeys.load(layout.keys)),
            UpdatePermission(server, probe, settings.calendar(), clock),
            {Product.SERVER: self._supervisor.switch, Product.AGENT: self._switch_agent},
            UpdateProgress(layout.progress, clock),
            prepare_minimums(layout, __version__),
            clock,
            settings.check_interval,
        )
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._stops_server = False

    async def run(self) -> int:
        """Run until a signal or an update of the agent. Return the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_signal, False)
        # SIGTERM leaves the server running; Ctrl-C at a terminal stops the server, too.
        loop.add_signal_handler(signal.SIGINT, self._on_signal, True)
        _log.info("cogwork-agent %s started in %s", __version__, self._layout.root)
        tasks = [
            asyncio.ensure_future(each)
            for each in (
                self._supervisor.run(),
                self._updater.run(),
                self._show_alive(),
                self._accept_itself(),
            )
        ]
        try:
            waiting: set[asyncio.Future[Any]] = {self._ended, *tasks}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and task.exception() is not None:
                    raise task.exception() or AssertionError
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._source.aclose()
        if self._stops_server:
            await self._supervisor.stop()
        return self._ended.result()

    def _on_signal(self, stops_server: bool) -> None:
        self._stops_server = stops_server
        self._end(EXIT_OK)

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    async def _switch_agent(self, version: str) -> None:
        """Make another version of the agent current, and exit. The launcher then starts it."""
        current = self._layout.current_version(Product.AGENT)
        state = self._states[Product.AGENT]
        self._states[Product.AGENT] = state.begin_trial(version, current, self._clock.time())
        await asyncio.to_thread(self._layout.switch, Product.AGENT, version)
        self._end(EXIT_UPDATED)
        await asyncio.Event().wait()  # wait here until `run` cancels this task

    async def _show_alive(self) -> None:
        while True:
            self._layout.alive.touch(0o644)
            await self._clock.sleep(ALIVE_INTERVAL)

    async def _accept_itself(self) -> None:
        """Accept this version of the agent after it has run for a while."""
        trial = self._states[Product.AGENT].trial
        if trial is not None and trial.version == __version__:
            began = self._clock.monotonic()
            await self._clock.sleep(_ACCEPT_AFTER)
            checked = asyncio.ensure_future(self._updater.has_checked.wait())
            try:
                rest = _ACCEPT_ANYWAY - (self._clock.monotonic() - began)
                await self._clock.wait({checked}, rest)
            finally:
                checked.cancel()
            self._states[Product.AGENT] = self._states[Product.AGENT].accept(__version__)
            _log.info("version %s of the agent works", __version__)
            await self._updater.report_good(Product.AGENT, __version__)
        await asyncio.Event().wait()


async def run_agent(layout: Layout, settings: AgentSettings, clock: Clock) -> int:
    """Run the agent. Raise AgentRunning or BadSettings."""
    layout.lock.touch(0o600)
    with layout.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AgentRunning(f"another agent runs in {layout.root}; stop it first") from None
        return await Agent(layout, settings, clock).run()


def server_command(layout: Layout, settings: AgentSettings) -> list[str]:
    """Return the command that starts the current version of the server.

    Use the path of the version instead of the link: after a switch, a running server would import
    modules of the new version through the link.
    """
    version = layout.current_version(Product.SERVER)
    if version is None:
        raise FileNotFoundError("no version of the server is installed")
    python = layout.slot(Product.SERVER, version) / "bin" / "python"
    command = [str(python), "-I", "-m", Product.SERVER.module, "-config", str(settings.config)]
    return [*command, *settings.server_arguments]


def _server_environment(layout: Layout) -> dict[str, str]:
    return {
        **os.environ,
        _SERVING_VARIABLE: str(layout.serving),
        PROGRESS_VARIABLE: str(layout.progress),
    }


def _find_server(layout: Layout, settings: AgentSettings) -> tuple[ServerProcess, ServerProbe]:
    """Return the server as a systemd service if its unit exists, else as a child process."""
    if _is_systemd_service():
        return SystemdServer(Systemctl()), ServerProbe(SERVING_FILE)
    server = ChildServer(
        lambda: server_command(layout, settings),
        layout.root,
        _server_environment(layout),
        settings.stop_timeout,
    )
    return server, ServerProbe(layout.serving)


def _make_source(settings: AgentSettings) -> UpdateSource:
    if settings.updates is not None:
        return FolderSource(settings.updates)
    # Import this only if it is needed, because machines without a cloud do not need gRPC.
    from cogwork.agent.updates.cloud_source import CloudSource

    return CloudSource(settings.config, _find_server_home())


def _find_server_home() -> Path:
    """Return the directory in which the server stores its data."""
    return DATA if _is_systemd_service() else cogwork_home(os.environ)


def _is_systemd_service() -> bool:
    return RUNNING.is_dir() and (UNITS / SERVICE).exists()

"""Runs a machine from its configuration file: starts, serves and stops it."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Mapping

from cogwork import __version__
from cogwork.config.schema.machine import MachineConfig
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.server.assembly import SESSIONS_TASK, ServerParts
from cogwork.server.closing import close_all, list_closing_steps
from cogwork.server.missing_config import describe_missing_file, is_missing
from cogwork.server.serve_options import ServeOptions
from cogwork.server.watchdog import ServerWatchdog, read_watchdog_limits
from cogwork.serving.listen_addresses import format_serving_line
from cogwork.serving.log import ServerLog
from cogwork.serving.process import dump_stacks_on_signal
from cogwork.serving.shutdown import Shutdown
from cogwork.serving.socket_directory import private_directory, remove_directory
from cogwork.subprocesses.leftovers import end_leftovers
from cogwork.subprocesses.orphans import kill_children
from cogwork.systemd.notify import SystemdNotifier
from cogwork.systemd.notify_socket import read_notify_settings

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_RESTART = -1
"""Return value of `serve` that requests a restart of the process."""

_log = logging.getLogger("rdk")


class NoConfiguration(CogworkError):
    """The configuration file does not exist."""


async def serve(
    options: ServeOptions, environment: Mapping[str, str], clock: Clock, log: ServerLog
) -> int:
    """Serve until a stop is requested, and return the exit code."""
    shutdown = Shutdown()
    shutdown.install_signal_handlers()
    dump_stacks_on_signal()
    notifier = SystemdNotifier(read_notify_settings(environment, os.getpid()), clock)
    with private_directory() as directory:
        shutdown.on_forced_exit(lambda: remove_directory(directory))
        shutdown.on_forced_exit(kill_children)
        server = Server(ServerParts(options, environment, clock, directory, shutdown, log))
        try:
            await server.start()
        except CogworkError as error:
            _log.error("%s", error)
            shutdown.fail("startup failed")
        else:
            notifier.start()
        reason = await shutdown.requested
        _log.info("stopping: %s", reason)
        notifier.report_stop(restarts=shutdown.wants_restart)
        unfinished = await server.aclose(reason)
        await notifier.aclose()
    shutdown.limit_exit_time()
    if shutdown.wants_restart:
        return EXIT_RESTART
    return EXIT_FAILURE if shutdown.failed or unfinished else EXIT_OK


class Server:
    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._watchdog: ServerWatchdog | None = None

    async def start(self) -> None:
        """Start serving before any resource is built, so that clients see an initializing
        machine."""
        parts = self._parts
        config = await self._load_first()
        parts.login.apply(config)
        await parts.certificates.load(config)
        await parts.parent.start(parts.table)
        listen = await parts.network.start(config)
        file = parts.options.config_file
        _log.info("cogwork-server %s is running %s", __version__, file)
        parts.journal.record("started", {"version": __version__, "file": str(file)})
        parts.log.print_line(
            format_serving_line(
                parts.listeners.addresses,
                listen.public,
                is_encrypted=parts.certificates.is_in_use,
            )
        )
        parts.network.write_serving_file()
        self._watchdog = ServerWatchdog(
            parts.machine.motion,
            parts.shutdown.force_exit,
            read_watchdog_limits(parts.environment),
        )
        parts.tasks.start(parts.machine.operations.watch(), "operations")
        parts.tasks.start(parts.machine.sessions.watch(), SESSIONS_TASK)
        parts.tasks.start(parts.log.pipeline.flush_periodically(), "log")
        parts.tasks.start(parts.certificates.watch(), "certificate")
        parts.tasks.start(self._watch_config(), "configuration")
        # The objects created so far are permanent, so the garbage collector need not scan them.
        gc.collect()
        gc.freeze()
        gc.enable()

    async def _load_first(self) -> MachineConfig:
        """Return the first configuration; empty if the file is refused."""
        parts = self._parts
        file = parts.options.config_file
        if is_missing(file) and all(is_missing(copy.path) for copy in parts.copies):
            raise NoConfiguration(describe_missing_file(file, parts.options.viam_config))
        await parts.joining.purge_logins(parts.copies, parts.history)
        first = await parts.config_watcher.load_first()
        if first is None:
            if is_missing(file):
                raise NoConfiguration(describe_missing_file(file, parts.options.viam_config))
            return MachineConfig.model_construct()
        # Do this before the first client can make the server log a secret.
        parts.log.redactor.add_secrets(first.secrets)
        former = await parts.applier.recall(first)
        if former is not None:
            parts.log.redactor.add_secrets(former.secrets)
        return first.result.config

    async def _watch_config(self) -> None:
        # First end programs that a killed server left running: they may use devices that this
        # server needs.
        await end_leftovers(self._parts.home, self._parts.clock)
        await self._parts.config_watcher.run()

    async def aclose(self, reason: str) -> list[object]:
        """Stop the server. Return the names of items that did not close in time."""
        parts = self._parts
        parts.journal.record("stopping", {"reason": reason})
        parts.machine.begin_stopping()
        unfinished = await close_all(list_closing_steps(parts), parts.clock)
        parts.journal.record("stopped", {"unfinished": [str(name) for name in unfinished]})
        parts.journal.close()
        if self._watchdog is not None:
            self._watchdog.close()
        for name in unfinished:
            _log.error("%s did not close in time", name)
        # Leave the cloud last, so that it receives the log of the shutdown.
        await parts.joining.aclose()
        return unfinished

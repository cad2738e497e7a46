"""A configured module: starts, probes, restarts and stops its process."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.schema.module import ModuleConfig
from cogwork.core.sentences import join_names
from cogwork.core.shield import await_shielded
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.levels import Level
from cogwork.logs.logger_names import MODULE_LOGGER_PREFIX
from cogwork.modules.client import ModuleCapabilities, ModuleClient
from cogwork.modules.context import ModuleContext
from cogwork.modules.first_run import perform_first_run
from cogwork.modules.handshake import Handshake, NotRunning
from cogwork.modules.health_probe import HealthProbe
from cogwork.modules.launch_spec import choose_address, find_user, make_launch_spec
from cogwork.modules.module_levels import ModuleLevels
from cogwork.modules.session import ModuleSession
from cogwork.modules.socket_folder import SocketFolder, open_socket_folder
from cogwork.net.local_address import remove_socket
from cogwork.robot.hosts import ModuleState as State
from cogwork.robot.hosts import ModuleStatus
from cogwork.subprocesses.last_failure import LastFailure
from cogwork.subprocesses.output_log import OutputLog
from cogwork.subprocesses.process import CannotStop, Child, LaunchSpec
from cogwork.subprocesses.run_errors import failing_on_errors
from cogwork.subprocesses.user_account import UserAccount
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE

_CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_CALL_GRACE = 0.5
"""Seconds that active calls have to finish before they are cancelled."""
_MAX_LOGGED_MODELS = 50
"""Maximum models that the log lists; the others are counted."""


class Module:
    def __init__(self, config: ModuleConfig, context: ModuleContext) -> None:
        self.config = config
        self.state = State.PENDING
        self._since = context.clock.time()
        self._failure = LastFailure(context.retry, context.redact)
        self.starts = 0
        self.pid: int | None = None
        self.unfinished: list[str] = []
        """Resources that did not close at the last stop, and the process if it did not end."""
        self._context = context
        self._log = logging.getLogger(f"{MODULE_LOGGER_PREFIX}{config.name}")
        self._output = OutputLog(self._log)
        self._levels = ModuleLevels(config.name, context, self._log)
        self.descriptors: dict[str, DescriptorPool] = {}
        """Descriptors of the services of the module, from the last reflection."""
        self._capabilities: ModuleCapabilities | None = None
        """Capabilities of the module when it was last ready."""
        self._session: ModuleSession | None = None
        self._run_task: asyncio.Task[None] | None = None
        self._restart_requested = asyncio.Event()
        self._progress = ""
        """Progress before the process starts: unpacking, or the first-run script."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def status(self) -> ModuleStatus:
        unresponsive = self._session.unresponsive_reason if self._session is not None else None
        return ModuleStatus(
            self.name,
            State.UNHEALTHY if unresponsive else self.state,
            self._since,
            unresponsive or self._error_text,
            0 if self.state is State.READY else self._failure.count,
            self.starts,
            self.pid,
        )

    @property
    def _error_text(self) -> str:
        if self.state is not State.UNHEALTHY:
            return self._progress or self._failure.reason
        return self._failure.text

    @property
    def capabilities(self) -> ModuleCapabilities | None:
        """Capabilities of the module, current or from its last run."""
        return self._capabilities

    def start(self) -> None:
        self._run_task = asyncio.get_running_loop().create_task(
            self._run(), name=f"module {self.name}"
        )

    def restart(self, why: str) -> None:
        """Restart the module now, even during the back-off after a failure."""
        self._log.info("restarting module %s: %s", self.name, why)
        self._failure.reset_count()
        self._restart_requested.set()

    async def stop(self, timeout: float | None = None) -> None:
        """Give the resources of the module up to `timeout` seconds to close, then stop the module.

        By default, the timeout is the module's `drain` deadline.
        """
        self._set_state(State.CLOSING)
        if self._session is not None:
            drain = self._context.deadlines.drain if timeout is None else timeout
            await self._drain(self._session, drain)
        self._context.notify_changed()
        if self._run_task is not None:
            self._run_task.cancel()
            await asyncio.gather(self._run_task, return_exceptions=True)

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        if (
            self._capabilities is None
            or (spec.name.api, spec.model) not in self._capabilities.models
        ):
            return None
        if self._session is None or self.state is not State.READY:
            return Unavailable(self.unavailable_reason, self.is_starting)
        return self._session.offer(spec)

    @property
    def is_starting(self) -> bool:
        """Whether the module is starting and has not failed yet."""
        return self.state in (State.PENDING, State.STARTING) and not self._failure.reason

    @property
    def unavailable_reason(self) -> str:
        """The reason why the module's resources are unavailable."""
        if self.state is State.CLOSING:
            return f'module "{self.name}" is being stopped'
        if self._failure.reason:
            again = "; restarting" if self.state is State.STARTING else ""
            return f'module "{self.name}" {self._failure.reason}{again}'
        return f'module "{self.name}" is starting'

    def apply_levels(self) -> None:
        """Apply the current log level rules to the module.

        A module that is still starting applies them when it is ready.
        """
        if self._session is not None and self._levels.apply():
            self.restart("its log level was lowered")

    async def _run(self) -> None:
        while True:
            self._restart_requested.clear()
            with failing_on_errors(f"module {self.name}", self._fail, self._log):
                await self._run_until_restart()
            await self._wait_backoff()

    async def _run_until_restart(self) -> None:
        """Run the process once. If a restart is requested during startup, cancel the startup."""
        run = asyncio.ensure_future(self._run_once())
        restart = asyncio.ensure_future(self._restart_requested.wait())
        try:
            await asyncio.wait({run, restart}, return_when=asyncio.FIRST_COMPLETED)
            if self._session is not None:
                await asyncio.wait({run})
        finally:
            restart.cancel()
            run.cancel()
            await await_shielded(asyncio.gather(run, return_exceptions=True))
        if not run.cancelled():
            run.result()

    async def _run_once(self) -> None:
        """Run the process until it exits or a restart is requested."""
        self._set_state(State.STARTING)
        self.starts += 1
        account = await find_user(self.config)
        with (
            open_socket_folder(self._context.socket_directory, account) as folder,
            self._context.open_parent_socket(self.name, folder.path) as parent,
        ):
            folder.hand_over(parent)
            await self._run_process(folder, parent)

    async def _run_process(self, folder: SocketFolder, parent: str) -> None:
        """Start the process and serve it. `parent`: the socket on which the module calls the
        machine."""
        address = choose_address(self.config, folder.path)
        level = self._levels.choose_start_level()
        launch = await self._install(address, level, folder.account)
        context = self._context
        child = await Child.start(launch, self._output.write, context.programs)
        self.pid = child.pid
        for warning in child.warnings:
            self._log.warning("%s", warning)
        if self.config.tcp_mode:
            self._log.warning(
                'module %s listens on %s, where any local process can call it; remove "tcp_mode" '
                "unless the module cannot use a Unix socket",
                self.name,
                address,
            )
        self._context.record_event(
            "module", {"module": self.name, "state": "started", "pid": child.pid}
        )
        target = address if self.config.tcp_mode else f"unix:{address}"
        channel = grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS)
        try:
            handshake = Handshake(address, parent, context.deadlines.start, context.clock)
            capabilities = await handshake.perform(child, ModuleClient(channel))
            await self._serve(child, capabilities, channel, target)
        except NotRunning as error:
            # Report the failure now: ending the remaining processes may take a while.
            self._fail(f"{error}{folder.hint_for(error.last_lines)}", error.last_lines)
        finally:
            session, self._session = self._session, None
            self.pid = None
            if self._restart_requested.is_set():
                # A requested restart is not a failure.
                self._set_state(State.STARTING)
            self._context.notify_changed()
            await await_shielded(self._clean_up(session, channel, child, address))

    async def _install(self, address: str, level: Level, account: UserAccount | None) -> LaunchSpec:
        """Unpack the module and perform its first run, if necessary."""
        try:
            launch = await make_launch_spec(
                self.config, self._context, address, level, self._report_progress, account
            )
            await perform_first_run(
                self.name,
                launch,
                self._report_progress,
                self._context.programs,
                timeout=self.config.first_run_timeout,
            )
        finally:
            self._progress = ""
        return launch

    def _report_progress(self, text: str) -> None:
        self._progress = self._context.redact(text)
        self._log.info("%s", text)

    async def _clean_up(
        self, session: ModuleSession | None, channel: grpc.aio.Channel, child: Child, address: str
    ) -> None:
        if session is not None:
            await session.end()
        # If the process has ended, wait: its calls then fail with a better error than a
        # cancellation.
        await channel.close(_CALL_GRACE)
        self.unfinished = sorted(map(str, session.unclosed)) if session is not None else []
        was_running = not child.exited.done()
        try:
            status = await child.stop()
        except CannotStop as error:
            self._log.error("%s", error)
            self.unfinished.append(f"module {self.name}")
        else:
            if was_running and status.code == -signal.SIGKILL:
                self.unfinished.append(f"module {self.name}")
        remove_socket(address)

    async def _serve(
        self, child: Child, capabilities: ModuleCapabilities, channel: grpc.aio.Channel, target: str
    ) -> None:
        started = self._context.clock.monotonic()
        session = self._session = ModuleSession(
            self.starts,
            capabilities,
            channel,
            target,
            self._context,
            self._levels.level_of,
            self._levels.on_provided,
            frozenset(self.config.forward_headers),
        )
        self._capabilities = capabilities
        self._failure.reason = ""
        self._set_state(State.READY)
        self._log.info("module %s is ready, with %s", self.name, _format_models(capabilities))
        self._context.notify_changed()
        self.apply_levels()
        beside = (
            asyncio.ensure_future(self._fetch_descriptors(session)),
            asyncio.ensure_future(self._levels.run(session)),
        )
        try:
            await HealthProbe(self.name, child, session, self._context, self._log).run_until(
                self._restart_requested
            )
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._failure.count_run(self._context.clock.monotonic() - started)
        if not child.exited.done():
            self._set_state(State.STARTING)
            # A module that does not respond cannot close its resources, either.
            await self._drain(
                session, 0.0 if session.unresponsive_reason else self._context.deadlines.drain
            )
        if child.exited.done():
            status = child.exited.result()
            raise NotRunning(status.description, status.last_lines)

    async def _fetch_descriptors(self, session: ModuleSession) -> None:
        try:
            self.descriptors = await session.fetch_descriptors()
        except Exception:
            self._log.exception("cannot fetch the service descriptors of module %s", self.name)

    async def _drain(self, session: ModuleSession, timeout: float) -> None:
        """Wait up to `timeout` seconds until all resources of the module are closed.

        The module is already marked as not ready, so the graph stops and closes its resources.
        """
        self._context.notify_changed()
        drained = asyncio.ensure_future(session.drained.wait())
        try:
            await self._context.clock.wait({drained}, timeout)
        finally:
            drained.cancel()

    async def _wait_backoff(self) -> None:
        if self._restart_requested.is_set():
            return
        restart = asyncio.ensure_future(self._restart_requested.wait())
        try:
            await self._context.clock.wait({restart}, self._failure.retry_delay)
        finally:
            restart.cancel()

    def _fail(self, why: str, last_lines: Sequence[str] = (), *, can_retry: bool = True) -> None:
        self._failure.record(why, last_lines, can_retry=can_retry)
        self._set_state(State.UNHEALTHY)
        self._log.error("module %s %s", self.name, self._failure.sentence)
        self._context.record_event(
            "module", {"module": self.name, "state": "failed", **self._failure.details}
        )
        self._context.notify_changed()

    def _set_state(self, state: State) -> None:
        if self.state is not State.CLOSING:
            self.state = state
            self._since = self._context.clock.time()


def _format_models(capabilities: ModuleCapabilities) -> str:
    names = sorted(str(model) for _, model in capabilities.models)
    return join_names(names, _MAX_LOGGED_MODELS) if names else "no models"

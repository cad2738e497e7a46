"""Start a machine from its configuration file, serve it, and stop it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Collection, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogwork import __version__
from cogwork.config.config_editor import ConfigEditor
from cogwork.config.config_history import config_history_for
from cogwork.config.config_report import ConfigReport
from cogwork.config.last_good import LastGood, last_good_for
from cogwork.config.load_context import LoadContext
from cogwork.config.loader import LoadedConfig
from cogwork.config.schema import JobConfig, MachineConfig
from cogwork.config.watcher import ConfigWatcher
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.home_protection import protect_home
from cogwork.core.paths import cogwork_home
from cogwork.core.sentences import join_names
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.events import Event, Observer, log_event
from cogwork.graph.limits import GraphLimits
from cogwork.graph.provider import Providers
from cogwork.graph.reconciler import Applied, Outcome
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.modules.context import Deadlines, ModuleContext, read_deadlines
from cogwork.modules.manager import ModuleManager, read_trusted_namespaces
from cogwork.modules.parent_server import ParentServer
from cogwork.packages.gate import PackageGate
from cogwork.packages.manager import PackageManager
from cogwork.processes.context import ProcessContext
from cogwork.processes.manager import ProcessManager
from cogwork.programs.host import ProgramHost
from cogwork.programs.leftovers import end_leftovers
from cogwork.programs.orphans import kill_children
from cogwork.programs.reaper import Reaper
from cogwork.remotes.manager import RemoteManager
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.robot.authentication import Authentication
from cogwork.robot.config_changes import ConfigChanges, summarize_changes
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.health import count_ready
from cogwork.robot.job_call import make_job_call, resolve_name
from cogwork.robot.machine import Machine
from cogwork.robot.module_host import ModuleState, ModuleStatus
from cogwork.robot.update_file import UpdateFile
from cogwork.server.config_applier import ConfigApplier
from cogwork.server.discovery import Discovery
from cogwork.server.joining import Joining
from cogwork.server.listen_addresses import resolve_listen_addresses
from cogwork.server.login import Login
from cogwork.server.serving_file import ServingFile
from cogwork.server.settled_config import SettledConfig
from cogwork.server.watchdog import ServerWatchdog, read_watchdog_limits
from cogwork.server.webrtc import WebRtc
from cogwork.serving.address import ListenAddresses, format_serving_line
from cogwork.serving.certificate_watcher import CertificateFiles, CertificateWatcher
from cogwork.serving.listeners import Listeners
from cogwork.serving.log import ServerLog
from cogwork.serving.process import dump_stacks_on_signal
from cogwork.serving.shutdown import SHUTDOWN_TIMEOUT, Shutdown
from cogwork.serving.socket_directory import private_directory, remove_directory
from cogwork.serving.tls_report import TlsReport
from cogwork.systemd.notify import SystemdNotifier
from cogwork.systemd.notify_socket import read_notify_settings
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.http1 import Application

if TYPE_CHECKING:
    from cogwork.auth.access_list import AccessList

CLOSE_BUDGET = 45.0
"""Seconds that all resources together get to close."""
_CLOSE_MARGIN = 10.0
"""Seconds of the time to stop that processes leave: to be killed, and to close the rest."""
_BUILD_MARGIN = 5.0
"""Seconds that the graph waits for a resource beyond the deadlines of its module."""

_MAX_NAMES = 5
"""Names that a log line lists."""

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_RESTART = -1
"""Not an exit code: the process shall start again."""

_log = logging.getLogger("rdk")


class NoConfiguration(CogworkError):
    """The configuration file does not exist."""


async def serve(
    config_file: Path,
    clock: Clock,
    log: ServerLog,
    *,
    port: int | None = None,
    untrusted: bool = False,
    allow_plaintext_credentials: bool = False,
    no_tls: bool = False,
    webrtc: bool = True,
    mdns: bool = True,
    shareddir: Path | None = None,
) -> int:
    """Serve until a stop is requested, and return the exit code.

    `port`: takes precedence over that of the configuration. `untrusted`: people who configure the
    machine may not run programs of their own. `allow_plaintext_credentials`: other computers may
    log in without TLS. `no_tls`: serve plaintext even if there is a certificate. `webrtc`: let
    clients connect over WebRTC. `mdns`: let clients find the machine by name. `shareddir`:
    the files of another control page.
    """
    shutdown = Shutdown()
    shutdown.install_signal_handlers()
    dump_stacks_on_signal()
    notifier = SystemdNotifier(read_notify_settings(os.environ, os.getpid()), clock)
    with private_directory() as directory:
        shutdown.on_forced_exit(lambda: remove_directory(directory))
        shutdown.on_forced_exit(kill_children)
        server = _Server(
            config_file,
            clock,
            directory,
            shutdown,
            log,
            port=port,
            untrusted=untrusted,
            allow_plaintext_credentials=allow_plaintext_credentials,
            no_tls=no_tls,
            webrtc=webrtc,
            mdns=mdns,
            shareddir=shareddir,
        )
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


class _Server:
    def __init__(
        self,
        config_file: Path,
        clock: Clock,
        directory: Path,
        shutdown: Shutdown,
        log: ServerLog,
        *,
        port: int | None,
        untrusted: bool,
        allow_plaintext_credentials: bool,
        no_tls: bool,
        webrtc: bool,
        mdns: bool,
        shareddir: Path | None,
    ) -> None:
        machine_access = MachineAccess()
        registry = Registry(
            [*builtin_models(machine_access, untrusted=untrusted), *entry_point_models()]
        )
        home = cogwork_home(os.environ)
        if opened := protect_home(home):
            _log.warning(
                "every user of this computer could change %s; closed %d directories, and check "
                "that nothing in them was replaced",
                *(home, len(opened)),
            )
        self._config_file = config_file
        self._port = port
        self._clock = clock
        self._home = home
        self._shutdown = shutdown
        self._server_log = log
        self._journal = journal = EventJournal(
            _journal_path(home, config_file), clock, log.redactor.redact
        )
        self._packages = PackageManager(
            home,
            config_file,
            clock,
            self._on_packages_changed,
            allow_plaintext=allow_plaintext_credentials,
            redact=log.redactor.redact,
        )
        gate = PackageGate(self._packages)
        self._providers = providers = Providers({"packages": gate, "built in": registry})
        deadlines = read_deadlines(os.environ)
        self._parent = ParentServer(directory)
        self._programs = ProgramHost(clock, Reaper())
        self._modules = ModuleManager(
            ModuleContext(
                self._programs,
                directory,
                self._parent.open_socket,
                home,
                os.environ,
                log.rules,
                self._on_modules_changed,
                journal.record,
                registry.has,
                log.resource_modules,
                deadlines=deadlines,
                redact=log.redactor.redact,
            ),
            read_trusted_namespaces(os.environ) if untrusted else None,
        )
        self._processes = ProcessManager(
            ProcessContext(
                self._programs,
                home,
                os.environ,
                journal.record,
                redact=log.redactor.redact,
            ),
            untrusted=untrusted,
        )
        providers.add("modules", self._modules)
        self._machine = machine = Machine(
            providers,
            clock,
            limits=_make_graph_limits(deadlines),
            observe=_combine_observers(log_event, journal.record_graph_event),
            redact=log.redactor.redact,
            modules=self._modules,
            processes=self._processes,
            packages=self._packages,
            job_call=self._call_job,
        )
        self._webrtc = (
            WebRtc(
                journal.record_client,
                clock,
                allow_plaintext_credentials=allow_plaintext_credentials,
            )
            if webrtc
            else None
        )
        self._remotes = RemoteManager(
            clock,
            providers.notify_changed,
            machine.set_discovered,
            self._webrtc.find_process if self._webrtc is not None else lambda: None,
            allow_plaintext=allow_plaintext_credentials,
            mdns=mdns,
        )
        providers.add("remotes", self._remotes)
        machine.remotes = self._remotes
        context = LoadContext(registry, home, os.environ)
        self._applier = ConfigApplier(
            machine,
            self._modules,
            self._processes,
            self._packages,
            gate,
            SettledConfig(_settled_copy(home, config_file), context),
            clock,
        )
        machine.bind(machine_access)
        self._authentication = authentication = Authentication(
            machine.operations, allow_plaintext=allow_plaintext_credentials
        )
        self._login = Login(authentication, home, clock)
        self._table = table = build_handler_table(
            machine,
            clock,
            shutdown.request,
            log.level_of,
            authentication,
            self._webrtc.find_peers if self._webrtc is not None else None,
        )
        self._job_call = make_job_call(
            table, lambda text: resolve_name(text, machine.nodes), lambda: machine
        )
        self._history = history = config_history_for(home, config_file)
        self._copies = (last_good_for(home, config_file), _settled_copy(home, config_file))
        editor = ConfigEditor(
            config_file, history, context, lambda: self._loaded, log.redactor.redact, clock
        )
        self._listeners = Listeners(
            table,
            lambda: _make_application(
                machine, clock, log.ring, journal, authentication, table, shareddir, editor
            ),
            directory,
            journal.record_client,
        )
        self._discovery = Discovery(clock, webrtc=webrtc) if mdns else None
        self._no_tls = no_tls
        self._serving_file = ServingFile(os.environ)
        machine.update_file = UpdateFile(os.environ)
        self._certificate = CertificateWatcher(
            directory, clock, self._listeners.use_tls, self._store_tls_report
        )
        self._joining = Joining(
            config_file,
            home,
            os.environ,
            log,
            shutdown,
            clock,
            allow_plaintext=allow_plaintext_credentials,
            on_certificate=self._use_certificate,
            on_access=self._use_access,
        )
        authentication.refresh_access = self._joining.ask_access
        authentication.is_joined = lambda: self._joining.is_joined
        machine.list_cloud_notices = lambda: self._joining.notices
        self._config_watcher = ConfigWatcher(
            self._joining.source,
            context,
            self._apply,
            self._copies[0],
            publish=self._store_report,
            history=history,
        )
        self._watchdog: ServerWatchdog | None = None
        self._loaded: LoadedConfig | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start serving before anything is built, so that clients see an initializing machine."""
        await self._joining.purge_logins(self._copies, self._history)
        first = await self._config_watcher.load_first()
        if first is None and not self._config_file.exists():
            raise NoConfiguration(
                f"{self._config_file} does not exist; check the path given with -config"
            )
        config = first.result.config if first is not None else MachineConfig.model_construct()
        if first is not None:
            # Before the first client can make the server log a secret.
            self._server_log.redactor.add_secrets(first.secrets)
            former = await self._applier.recall(first)
            if former is not None:
                self._server_log.redactor.add_secrets(former.secrets)
        self._login.apply(config)
        listen = self._resolve_listen_addresses(config)
        await self._certificate.load(self._find_certificate_files(config))
        await self._parent.start(self._table)
        await self._listeners.start(listen)
        _log.info("cogwork-server %s is running %s", __version__, self._config_file)
        self._journal.record("started", {"version": __version__, "file": str(self._config_file)})
        self._server_log.print_line(
            format_serving_line(
                self._listeners.addresses, listen.public, is_encrypted=self._certificate.is_in_use
            )
        )
        self._write_serving_file()
        self._watchdog = ServerWatchdog(
            self._machine, self._shutdown.force_exit, read_watchdog_limits(os.environ)
        )
        self._create_task(self._machine.operations.watch(), "operations")
        self._create_task(self._machine.sessions.watch(), "sessions")
        self._create_task(self._server_log.pipeline.flush_periodically(), "log")
        self._create_task(self._certificate.watch(), "certificate")
        self._create_task(self._watch_config(), "configuration")
        # Objects created so far are permanent, so the garbage collector need not scan them.
        gc.collect()
        gc.freeze()
        gc.enable()

    async def _watch_config(self) -> None:
        # A program left over from a killed server may still hold devices that this one needs.
        await end_leftovers(self._home, self._clock)
        await self._config_watcher.run()

    async def _call_job(self, config: JobConfig) -> None:
        await self._job_call(config)

    async def aclose(self, reason: str) -> list[Any]:
        """Stop the server, and return the names of what did not close in time."""
        began = self._clock.monotonic()
        self._journal.record("stopping", {"reason": reason})
        self._machine.begin_stopping()
        await self._listeners.stop_accepting()
        if self._webrtc is not None:
            self._webrtc.stop_answering()
        # A client may disappear while the machine closes, so the session watcher stops last.
        watching = {task for task in self._tasks if task.get_name() == "sessions"}
        await _cancel_tasks(self._tasks - watching)
        await self._config_watcher.aclose()
        await self._applier.aclose()
        unfinished: list[Any] = await self._machine.aclose(CLOSE_BUDGET)
        await _cancel_tasks(watching)
        unfinished += await self._modules.aclose()
        left = SHUTDOWN_TIMEOUT - _CLOSE_MARGIN - (self._clock.monotonic() - began)
        unfinished += await self._processes.aclose(max(0.0, left))
        await self._programs.aclose()
        await self._remotes.aclose()
        await self._parent.aclose()
        await self._listeners.aclose()
        if self._webrtc is not None:
            await self._webrtc.aclose()
        if self._discovery is not None:
            await self._discovery.aclose()
        self._journal.record("stopped", {"unfinished": [str(name) for name in unfinished]})
        self._journal.close()
        if self._watchdog is not None:
            self._watchdog.close()
        for name in unfinished:
            _log.error("%s did not close in time", name)
        await self._joining.aclose()
        return unfinished

    def _apply(self, loaded: LoadedConfig) -> asyncio.Future[Outcome]:
        changes = summarize_changes(self._loaded, loaded)
        self._loaded = loaded
        self._server_log.apply(loaded)
        self._login.apply(loaded.result.config)
        if self._webrtc is not None:
            self._webrtc.apply(loaded.result.config, self._table, self._authentication.admit)
        self._use_certificate()
        self._listen(loaded.result.config)
        self._remotes.apply(loaded.result.config.remotes)
        outcome = self._applier.apply(loaded)
        outcome.add_done_callback(lambda done: self._report_applied(done, changes))
        return outcome

    def _listen(self, config: MachineConfig) -> None:
        listen = self._resolve_listen_addresses(config)
        self._create_task(self._change_listeners(config, listen), "network")

    def _resolve_listen_addresses(self, config: MachineConfig) -> ListenAddresses:
        return resolve_listen_addresses(
            config, self._port, requires_login=self._authentication.authenticator is not None
        )

    def _on_packages_changed(self) -> None:
        self._applier.apply_packages()

    def _on_modules_changed(self) -> None:
        self._applier.apply_modules()
        self._providers.notify_changed()

    async def _change_listeners(self, config: MachineConfig, listen: ListenAddresses) -> None:
        await self._listeners.change(listen)
        self._write_serving_file()
        if self._discovery is not None:
            self._discovery.apply(config, self._listeners.addresses)

    def _use_access(self, access: AccessList) -> None:
        had_login = self._authentication.authenticator is not None
        self._login.use_access(access)
        has_login = self._authentication.authenticator is not None
        if self._loaded is not None and has_login != had_login:
            # A machine that knows who may use it can serve the network.
            self._listen(self._loaded.result.config)

    def _use_certificate(self) -> None:
        if self._loaded is not None:
            config = self._loaded.result.config
            self._certificate.change_files(self._find_certificate_files(config))

    def _find_certificate_files(self, config: MachineConfig) -> CertificateFiles | None:
        network = config.network
        if self._no_tls or network.no_tls:
            return None
        if not network.tls_cert_file:
            of_cloud = self._joining.certificate if config.cloud is not None else None
            return CertificateFiles(of_cloud, of_cloud) if of_cloud is not None else None
        authority = network.tls_client_ca_file
        return CertificateFiles(
            Path(network.tls_cert_file).expanduser(),
            Path(network.tls_key_file).expanduser(),
            Path(authority).expanduser() if authority else None,
            tuple(config.auth.tls_auth_entities),
        )

    def _store_tls_report(self, report: TlsReport | None) -> None:
        self._machine.tls_report = report
        self._write_serving_file()

    def _write_serving_file(self) -> None:
        self._serving_file.write(
            self._listeners.addresses, is_encrypted=self._certificate.is_in_use
        )

    def _store_report(self, report: ConfigReport) -> None:
        self._machine.config_report = report

    def _report_applied(self, outcome: asyncio.Future[Outcome], changes: ConfigChanges) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        applied = outcome.result()
        if isinstance(applied, Applied):
            seconds = round(applied.seconds, 3)
            ready, not_ready = count_ready(self._machine.nodes.values())
            _log.info(
                "configuration %s applied in %gs: %d ready, %d not%s",
                applied.revision,
                seconds,
                ready,
                not_ready,
                _describe_starting(self._modules.statuses()),
            )
            self._journal.record(
                "configuration",
                {
                    "revision": applied.revision,
                    "seconds": seconds,
                    "ready": ready,
                    "unhealthy": not_ready,
                    **changes,
                },
            )

    def _create_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("task %s failed; stopping the server", task.get_name(), exc_info=error)
            self._shutdown.fail(f"task {task.get_name()} failed")


def _make_graph_limits(deadlines: Deadlines) -> GraphLimits:
    """Give modules their full deadlines: their timeouts explain more than a build timeout does."""
    asked = deadlines.validate + deadlines.remove + deadlines.add
    return GraphLimits(build=max(GraphLimits().build, asked + _BUILD_MARGIN))


def _describe_starting(modules: Iterable[ModuleStatus]) -> str:
    """Return which modules are still starting, as the end of a sentence."""
    starting = [
        each.name
        for each in modules
        if each.state in (ModuleState.PENDING, ModuleState.STARTING) and not each.error
    ]
    if not starting:
        return ""
    noun = "module" if len(starting) == 1 else "modules"
    return f"; still starting: {noun} {join_names(starting, _MAX_NAMES)}"


async def _cancel_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _combine_observers(first: Observer, second: Observer) -> Observer:
    def observe(event: Event) -> None:
        first(event)
        second(event)

    return observe


def _journal_path(home: Path, config_file: Path) -> Path:
    """Return the journal's path, named like the last-known-good copy of the same file."""
    return home / "story" / last_good_for(home, config_file).path.with_suffix(".jsonl").name


def _settled_copy(home: Path, config_file: Path) -> LastGood:
    return LastGood(home / "packages" / "settled" / last_good_for(home, config_file).path.name)


def _make_application(
    machine: Machine,
    clock: Clock,
    ring: RingBuffer,
    journal: EventJournal,
    authentication: Authentication,
    table: HandlerTable,
    shareddir: Path | None,
    editor: ConfigEditor,
) -> Application:
    from cogwork.control.http import create_app
    from cogwork.control.static_site import BUILT_SITE, StaticSite

    site = StaticSite(shareddir or BUILT_SITE)
    if site.problem is not None:
        _log.warning("%s; the plain status page is served instead", site.problem)
    return create_app(machine, clock, ring, journal, authentication, table, site, editor)

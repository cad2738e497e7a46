"""Creates the parts of a server, and connects them to each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig
from cogwork.config.schema.machine import JobConfig
from cogwork.config.source.config_editor import ConfigEditor
from cogwork.config.source.config_history import config_history_for
from cogwork.config.source.config_report import ConfigReport
from cogwork.config.source.last_good import LastGood, last_good_for
from cogwork.config.source.sources import Verdict
from cogwork.config.source.watcher import ConfigWatcher
from cogwork.core.clock import Clock
from cogwork.core.files.home_protection import protect_home
from cogwork.core.paths import cogwork_home
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.events import Event, Observer, log_event
from cogwork.graph.limits import GraphLimits
from cogwork.graph.provider import Providers
from cogwork.graph.reconciler import Outcome
from cogwork.modules.context import Deadlines, ModuleContext, read_deadlines
from cogwork.modules.manager import ModuleManager, read_trusted_namespaces
from cogwork.modules.parent_server import ParentServer
from cogwork.packages.gate import PackageGate
from cogwork.packages.manager import PackageManager
from cogwork.processes.context import ProcessContext
from cogwork.processes.manager import ProcessManager
from cogwork.remotes.manager import RemoteManager
from cogwork.resource.default_services import default_specs
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.robot.config_changes import summarize_changes
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.jobs.job_call import make_job_call, resolve_name
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.status.server_load import ServerLoad
from cogwork.robot.status.server_report import ServerReport
from cogwork.robot.status.update_file import UpdateFile
from cogwork.server.apply_report import ApplyReport
from cogwork.server.background_tasks import BackgroundTasks
from cogwork.server.certificates import Certificates
from cogwork.server.cloud_membership import CloudMembership
from cogwork.server.config_applier import ConfigApplier
from cogwork.server.discovery import Discovery
from cogwork.server.journal_folder import prepare_journal_folder
from cogwork.server.last_complete_config import LastCompleteConfig
from cogwork.server.login import ConfiguredLogin
from cogwork.server.public_network import PublicNetwork
from cogwork.server.serve_options import ServeOptions
from cogwork.server.serving_file import ServingFile
from cogwork.server.webrtc import WebRtc
from cogwork.serving.certificate_watcher import CertificateWatcher
from cogwork.serving.listeners import Listeners
from cogwork.serving.log import ServerLog
from cogwork.serving.shutdown import Shutdown
from cogwork.serving.tls_report import TlsReport
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.reaper import Reaper
from cogwork.wire.transports.asgi import Application

SESSIONS_TASK: Final = "sessions"
"""Name of the task that expires sessions."""
_BUILD_MARGIN: Final = 5.0
"""Seconds that the graph waits for a resource beyond the deadlines of its module."""

_log = logging.getLogger("rdk")


class ServerParts:
    """All parts of a server, not started.

    Parts that depend on each other use this object to find each other when they are called.
    """

    def __init__(
        self,
        options: ServeOptions,
        environment: Mapping[str, str],
        clock: Clock,
        directory: Path,
        shutdown: Shutdown,
        log: ServerLog,
    ) -> None:
        """Create the parts. `directory` is private to this process."""
        self.options = options
        self.environment = environment
        self.clock = clock
        self.shutdown = shutdown
        self.log = log
        self.home = _open_home(environment)
        self.tasks = BackgroundTasks(shutdown.fail)
        self._directory = directory
        self._loaded: LoadedConfig | None = None
        """The last configuration that was applied."""
        self._last_good = last_good_for(self.home, options.config_file)
        self._last_complete = LastGood(
            self.home / "packages" / "settled" / self._last_good.path.name
        )
        self.copies = (self._last_good, self._last_complete)
        """Stored texts of configurations."""
        journal_name = self._last_good.path.with_suffix(".jsonl").name
        self.journal = EventJournal(
            prepare_journal_folder(self.home) / journal_name, clock, log.redactor.redact
        )
        self._create_programs()
        self._create_machine()
        self._create_handlers()
        self._create_configuration()
        self._create_network()

    def _create_programs(self) -> None:
        """Create the parts that run programs or provide resources: packages, modules, processes."""
        options, redact = self.options, self.log.redactor.redact
        self._machine_access = MachineAccess()
        models = builtin_models(self._machine_access, untrusted=options.untrusted)
        self._registry = Registry([*models, *entry_point_models()])
        self.packages = PackageManager(
            self.home,
            options.config_file,
            self.clock,
            lambda: self.applier.apply_packages(),
            allow_plaintext=options.allow_plaintext_credentials,
            redact=redact,
        )
        self._gate = PackageGate(self.packages)
        self.providers = Providers({"packages": self._gate, "built in": self._registry})
        self.parent = ParentServer(self._directory)
        self.programs = ProgramHost(self.clock, Reaper())
        self._deadlines = read_deadlines(self.environment)
        self.modules = ModuleManager(
            ModuleContext(
                self.programs,
                self._directory,
                self.parent.open_socket,
                self.home,
                self.environment,
                self.log.rules,
                self._on_modules_changed,
                self.journal.record,
                self._registry.has,
                self.log.resource_modules,
                deadlines=self._deadlines,
                redact=redact,
            ),
            read_trusted_namespaces(self.environment) if options.untrusted else None,
        )
        self.providers.add("modules", self.modules)
        self.processes = ProcessManager(
            ProcessContext(
                self.programs, self.home, self.environment, self.journal.record, redact=redact
            ),
            untrusted=options.untrusted,
        )

    def _create_machine(self) -> None:
        options, clock = self.options, self.clock
        self.webrtc = (
            WebRtc(
                self.journal.record_client,
                clock,
                allow_plaintext_credentials=options.allow_plaintext_credentials,
            )
            if options.webrtc
            else None
        )
        self.remotes = RemoteManager(
            clock,
            self.providers.notify_changed,
            lambda specs: self.machine.set_discovered(specs),
            self.webrtc.find_process if self.webrtc is not None else lambda: None,
            allow_plaintext=options.allow_plaintext_credentials,
            mdns=options.mdns,
        )
        self.providers.add("remotes", self.remotes)
        self.machine = Machine(
            self.providers,
            clock,
            limits=_make_graph_limits(self._deadlines),
            observe=_combine_observers(log_event, self.journal.record_graph_event),
            redact=self.log.redactor.redact,
            modules=self.modules,
            processes=self.processes,
            packages=self.packages,
            remotes=self.remotes,
            job_call=self._call_job,
            defaults=default_specs(self._registry),
        )
        self.machine.bind(self._machine_access)
        self.report = ServerReport(
            ServerLoad(clock),
            UpdateFile(self.environment),
            list_cloud_notices=lambda: self.joining.notices,
        )
        self._apply_report = ApplyReport(self.machine, self.modules, self.journal)

    def _create_handlers(self) -> None:
        options, machine = self.options, self.machine
        self.authentication = Authentication(
            machine.operations, allow_plaintext=options.allow_plaintext_credentials
        )
        self.login = ConfiguredLogin(self.authentication, self.home, self.clock)
        self.table = build_handler_table(
            machine,
            self.clock,
            self.shutdown.request,
            self.log.level_of,
            self.authentication,
            self.webrtc.find_peers if self.webrtc is not None else None,
        )
        self._job_call = make_job_call(
            self.table, lambda text: resolve_name(text, machine.names()), lambda: machine
        )

    def _create_configuration(self) -> None:
        options, clock = self.options, self.clock
        context = LoadContext(self._registry, self.home, self.environment)
        self.history = config_history_for(self.home, options.config_file)
        self._editor = ConfigEditor(
            options.config_file,
            self.history,
            context.in_directory_of(options.config_file),
            lambda: self._loaded,
            self.log.redactor.redact,
            clock,
        )
        self.applier = ConfigApplier(
            self.machine,
            self.modules,
            self.processes,
            self.packages,
            self._gate,
            LastCompleteConfig(self._last_complete, context),
            clock,
        )
        self.joining = CloudMembership(
            options.config_file,
            self.home,
            self.environment,
            self.log,
            self.shutdown,
            clock,
            allow_plaintext=options.allow_plaintext_credentials,
            on_certificate=lambda: self.certificates.use_cloud_certificate(),
            on_access=lambda access: self.network.use_access(self.login, access),
        )
        self.authentication.refresh_access = self.joining.ask_access
        self.authentication.is_joined = lambda: self.joining.is_joined
        self.config_watcher = ConfigWatcher(
            self.joining.source,
            context,
            self.apply,
            self._last_good,
            publish=self._store_config_report,
            history=self.history,
        )

    def _create_network(self) -> None:
        options, clock = self.options, self.clock
        self.listeners = Listeners(
            self.table, self._create_application, self._directory, self.journal.record_client
        )
        watcher = CertificateWatcher(
            self._directory, clock, self.listeners.use_tls, self._store_tls_report
        )
        self.certificates = Certificates(
            watcher, lambda: self.joining.certificate, no_tls=options.no_tls
        )
        self.discovery = Discovery(clock, webrtc=options.webrtc) if options.mdns else None
        self.network = PublicNetwork(
            self.listeners,
            self.certificates,
            self.authentication,
            self.discovery,
            ServingFile(self.environment),
            self.tasks,
            options.port,
        )

    def apply(
        self, loaded: LoadedConfig, verdict: asyncio.Future[Verdict]
    ) -> asyncio.Future[Outcome]:
        """Apply a configuration to all parts, and report it in the log once `verdict` says that it
        is applied. Return a future with the graph's outcome."""
        changes = summarize_changes(self._loaded, loaded)
        self._loaded = loaded
        config = loaded.result.config
        self.log.apply(loaded)
        self.login.apply(config)
        if self.webrtc is not None:
            self.webrtc.apply(config, self.table, self.authentication.admit)
        self.certificates.apply(config)
        self.network.apply(config)
        self.remotes.apply(config.remotes)
        self._apply_report.follow(verdict, changes)
        return self.applier.apply(loaded)

    def _on_modules_changed(self) -> None:
        self.applier.apply_modules()
        self.providers.notify_changed()

    async def _call_job(self, config: JobConfig) -> None:
        await self._job_call(config)

    def _store_config_report(self, report: ConfigReport) -> None:
        self.report.config = report

    def _store_tls_report(self, report: TlsReport | None) -> None:
        self.report.tls = report
        self.network.write_serving_file()

    def _create_application(self) -> Application:
        # Imported with the first connection: the machine starts faster without the web pages.
        from cogwork.control.http import MachineApp
        from cogwork.control.static_site import BUILT_SITE, StaticSite

        site = StaticSite(self.options.shareddir or BUILT_SITE)
        if site.problem is not None:
            _log.warning("%s; the plain status page is served instead", site.problem)
        return MachineApp(
            self.machine,
            self.report,
            self.clock,
            self.log.ring,
            self.journal,
            self.authentication,
            self.table,
            site,
            self._editor,
            has_webrtc=self.webrtc is not None and self.webrtc.is_installed,
        )


def _open_home(environment: Mapping[str, str]) -> Path:
    home = cogwork_home(environment)
    if opened := protect_home(home):
        _log.warning(
            "every user of this computer could write to %s; removed this permission from %d "
            "directories; check that nothing in them was replaced",
            *(home, len(opened)),
        )
    return home


def _make_graph_limits(deadlines: Deadlines) -> GraphLimits:
    """Return build timeouts above the deadlines of modules, so that the modules' errors, which
    explain more, come first."""
    asked = deadlines.validate + deadlines.remove + deadlines.add
    return GraphLimits(build=max(GraphLimits().build, asked + _BUILD_MARGIN))


def _combine_observers(first: Observer, second: Observer) -> Observer:
    def observe(event: Event) -> None:
        first(event)
        second(event)

    return observe

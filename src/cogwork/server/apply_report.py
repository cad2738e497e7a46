"""Reports applied configurations in the log and in the machine's journal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from cogwork.config.source.sources import Verdict
from cogwork.core.sentences import join_names
from cogwork.graph.reconciler import Applied
from cogwork.modules.manager import ModuleManager
from cogwork.robot.config_changes import ConfigChanges
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.hosts import ModuleState, ModuleStatus
from cogwork.robot.machine import Machine
from cogwork.robot.status.health import count_ready

_MAX_NAMES = 5
"""Maximum names that a log line lists."""

_log = logging.getLogger("rdk")


class ApplyReport:
    def __init__(self, machine: Machine, modules: ModuleManager, journal: EventJournal) -> None:
        self._machine = machine
        self._modules = modules
        self._journal = journal

    def follow(self, verdict: asyncio.Future[Verdict], changes: ConfigChanges) -> None:
        """Report a configuration when it is applied and stored. `changes`: the differences from the
        previous configuration."""
        verdict.add_done_callback(lambda done: self._report(done, changes))

    def _report(self, verdict: asyncio.Future[Verdict], changes: ConfigChanges) -> None:
        if verdict.cancelled() or verdict.exception() is not None:
            return
        applied = verdict.result()
        if not isinstance(applied, Applied):
            return
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


def _describe_starting(modules: Iterable[ModuleStatus]) -> str:
    """Return the end of a sentence that lists the modules that are still starting."""
    starting = [
        each.name
        for each in modules
        if each.state in (ModuleState.PENDING, ModuleState.STARTING) and not each.error
    ]
    if not starting:
        return ""
    noun = "module" if len(starting) == 1 else "modules"
    return f"; still starting: {noun} {join_names(starting, _MAX_NAMES)}"

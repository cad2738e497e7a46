"""Follows a source: loads what comes, has it applied, and reports what became of it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

from cogwork.config import codes, render
from cogwork.config.file import Unreadable
from cogwork.config.last_good import DamagedCopy, LastGood
from cogwork.config.load import Loaded, load, load_nothing, load_value
from cogwork.config.sources import Candidate, Refused, Source
from cogwork.config.surroundings import Surroundings
from cogwork.core.workers import Workers
from cogwork.graph.reconcile import Applied, Outcome, Superseded

Apply = Callable[[Loaded], asyncio.Future[Outcome]]
"""Starts to apply at once and supersedes what came before."""

_log = logging.getLogger("rdk.config")


class Follower:
    def __init__(
        self,
        source: Source,
        surroundings: Surroundings,
        apply: Apply,
        last_good: LastGood | None = None,
    ) -> None:
        self._source = source
        self._surroundings = surroundings
        self._apply = apply
        self._last_good = last_good
        self._applying: set[asyncio.Task[None]] = set()
        self._thread = Workers("config")
        self._opened = False
        self._first: tuple[Candidate, Loaded] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self.first()
            if self._first is not None:
                self._start(*self._first)
            while True:
                await self._follow(await self._source.next())
        finally:
            await self.aclose()

    async def first(self) -> Loaded | None:
        """What it will run first: where to listen is known before anything is built.

        None when there is nothing that could run; what comes later is followed all the same.
        """
        if not self._opened:
            self._opened = True
            candidate = await self._source.next()
            loaded = await self._load(candidate)
            if loaded.refused:
                candidate.decide(Refused(loaded.faults))
                self._first = await self._fall_back(candidate.file)
            else:
                self._first = candidate, loaded
        return self._first[1] if self._first is not None else None

    async def _follow(self, candidate: Candidate) -> None:
        loaded = await self._load(candidate)
        if loaded.refused:
            candidate.decide(Refused(loaded.faults))
            _log.error("the changed configuration is refused; the machine keeps what it runs")
        else:
            self._start(candidate, loaded)

    async def _fall_back(self, file: str | None) -> tuple[Candidate, Loaded] | None:
        try:
            text = await self._thread.run(self._last_good.read) if self._last_good else None
        except DamagedCopy as error:
            _log.error("%s", error)
            text = None
        if text is None:
            _log.error("there is no earlier configuration to run: mend %s", file or "it")
            return None
        candidate = Candidate(text)
        loaded = await self._load(candidate)
        if loaded.refused:
            _log.error("the last one that was applied cannot be used either: mend %s", file or "it")
            return None
        _log.error(
            "RUNNING THE LAST CONFIGURATION THAT WAS APPLIED, because %s cannot be used; mend it "
            "and it is taken over at once",
            file or "the one given",
        )
        return candidate, loaded

    def _start(self, candidate: Candidate, loaded: Loaded) -> None:
        try:
            outcome = self._apply(loaded)
        except Exception as error:
            _log.exception("the configuration could not be applied")
            candidate.fail(error)
            return
        task = asyncio.get_running_loop().create_task(self._see_through(candidate, loaded, outcome))
        self._applying.add(task)
        task.add_done_callback(self._applying.discard)

    async def _see_through(
        self, candidate: Candidate, loaded: Loaded, outcome: asyncio.Future[Outcome]
    ) -> None:
        try:
            verdict = await outcome
        except asyncio.CancelledError:
            candidate.decide(Superseded(""))
            raise
        except Exception as error:
            _log.exception("the configuration could not be applied")
            candidate.fail(error)
            return
        if isinstance(verdict, Applied) and self._last_good is not None:
            await self._keep(self._last_good, loaded.text or json.dumps(candidate.content))
        candidate.decide(verdict)

    async def _keep(self, last_good: LastGood, text: str) -> None:
        try:
            await self._thread.run(lambda: last_good.keep(text))
        except (OSError, ValueError) as error:
            _log.warning("the last applied configuration could not be kept: %s", error)

    async def aclose(self) -> None:
        """Only for one that was never run; a running one is cancelled."""
        for task in self._applying:
            task.cancel()
        await asyncio.gather(*self._applying, return_exceptions=True)
        await self._source.aclose()
        self._thread.close()

    async def _load(self, candidate: Candidate) -> Loaded:
        loaded = await self._thread.run(lambda: _load(candidate, self._surroundings))
        _log_faults(loaded, candidate.file)
        return loaded


def _load(candidate: Candidate, surroundings: Surroundings) -> Loaded:
    content = candidate.content
    if isinstance(content, Unreadable):
        return load_nothing(content)
    try:
        if isinstance(content, str):
            return load(content, surroundings)
        return load_value(content, surroundings)
    except (Exception, SystemExit) as error:
        # A slip of a plug-in, or of ours, must not stop a machine that runs.
        _log.critical("a configuration could not be judged", exc_info=error)
        return load_nothing(Unreadable(f"judging it failed with {type(error).__name__}"))


def _log_faults(loaded: Loaded, file: str | None) -> None:
    for fault in loaded.faults:
        severity = fault.diagnostic.code.severity
        level = logging.ERROR if severity is codes.Severity.ERROR else logging.WARNING
        _log.log(level, "%s", render.as_text(fault, file))

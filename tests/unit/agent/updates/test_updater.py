"""The updater: what it installs, what waits, what it refuses and reports, with a manual clock."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.agent.releases import ReleaseMaker
from tests.support.waiting import wait_until

from cogwork.agent.errors import BadRelease, SourceUnavailable, SwitchFailed
from cogwork.agent.release.signature import TrustedKeys
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore
from cogwork.agent.slots.store import StateStore
from cogwork.agent.updates.progress import UpdateProgress
from cogwork.agent.updates.source import UpdateTarget
from cogwork.agent.updates.updater import CHECK_INTERVAL, DECISION_INTERVAL, Updater
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import MachineProgress, read_progress
from cogwork.wire.messages.update_method import Outcome, UpdateReport

SERVER, AGENT = Product.SERVER, Product.AGENT


class Machine:
    """A machine with the versions 1.0.0 to 1.2.0 of both products, and its source of updates."""

    def __init__(self, root: Path) -> None:
        self.layout, self.clock = Layout(root), ManualClock()
        self.releases = ReleaseMaker(root / "releases")
        self.releases.use_quick_pip()
        for product in Product:
            for version in ("1.0.0", "1.1.0", "1.2.0"):
                self.layout.slot(product, version).mkdir(parents=True)
            self.layout.switch(product, "1.0.0")
        self.states = StateStore(self.layout)
        self.minimums = MinimumStore(self.layout.minimums)
        self.targets: dict[Product, UpdateTarget] = {}
        self.is_away = False
        self.takes_reports = True
        self.checks: list[Mapping[Product, str | None]] = []
        self.trials: list[set[Product]] = []
        """The products on trial at each check."""
        self.reports: list[UpdateReport] = []
        self.denial: str | None = None
        self.faults: dict[str, Exception] = {}
        """What a switch to a version raises."""
        self.switched: list[tuple[Product, str]] = []
        self.updater = Updater(
            self.layout,
            self.states,
            self,
            Installer(self.layout, TrustedKeys([self.releases.key.public_key()])),
            cast("UpdatePermission", self),
            {SERVER: self._switch_server, AGENT: self._switch_agent},
            UpdateProgress(self.layout.progress, self.clock),
            self.minimums,
            self.clock,
        )

        self._running: asyncio.Task[None] | None = None

    async def advance(self, seconds: float) -> None:
        """Let time pass, after the first check at once."""
        if self._running is None:
            self._running = asyncio.create_task(self.updater.run())
        await self.clock.advance(seconds)

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def check(
        self, current: Mapping[Product, str | None], on_trial: Collection[Product]
    ) -> Mapping[Product, UpdateTarget]:
        self.checks.append(current)
        self.trials.append(set(on_trial))
        if self.is_away:
            raise SourceUnavailable("the cloud is away")
        return self.targets

    async def report(self, report: UpdateReport) -> None:
        if self.is_away or not self.takes_reports:
            raise SourceUnavailable("the cloud is away")
        self.reports.append(report)

    async def aclose(self) -> None: ...

    async def find_denial(self) -> str | None:
        return self.denial

    async def _switch_server(self, version: str) -> None:
        self._switch(SERVER, version)

    async def _switch_agent(self, version: str) -> None:
        self._switch(AGENT, version)

    def _switch(self, product: Product, version: str) -> None:
        self.switched.append((product, version))
        if version in self.faults:
            raise self.faults[version]
        self.layout.switch(product, version)

    async def offer_release(self, archive: Path, version: str = "2.0.0", sha256: str = "") -> str:
        """Offer a release that has to be fetched, and return the phase in which that ends."""
        self.targets[SERVER] = UpdateTarget(version, archive.as_uri(), sha256)
        await self.advance(0 if self._running is None else CHECK_INTERVAL)
        await wait_until(lambda: self.phase not in ("", "installing"))
        return self.phase

    def make_untrusted(self) -> Path:
        """Return a release that another publisher has signed."""
        key = Ed25519PrivateKey.generate()
        return self.releases.make(SERVER, "2.0.0", "print('2.0.0')", key=key)

    @property
    def phase(self) -> str:
        found = self.progress.products.get(SERVER)
        return found.phase if found is not None else ""

    @property
    def downloads(self) -> list[str]:
        return [each.name for each in self.layout.downloads.iterdir()]

    def offer(self, version: str, product: Product = SERVER, *, is_rollback: bool = False) -> None:
        self.targets[product] = UpdateTarget(version, "", is_rollback=is_rollback)

    @property
    def outcomes(self) -> list[tuple[Product, str, Outcome]]:
        return [(each.product, each.version, each.outcome) for each in self.reports]

    @property
    def progress(self) -> MachineProgress:
        return read_progress(self.layout.progress)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    made = Machine(tmp_path)
    yield made
    await made.stop()


async def test_offered_version_becomes_current_and_is_reported(machine: Machine) -> None:
    machine.offer("1.1.0")
    await machine.advance(0)
    assert machine.layout.current_version(SERVER) == "1.1.0"
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.GOOD)]
    assert machine.progress.products[SERVER].phase == "current"
    await machine.advance(CHECK_INTERVAL)
    assert machine.checks[-1][SERVER] == "1.1.0"
    assert machine.switched == [(SERVER, "1.1.0")]


async def test_server_is_updated_before_the_agent(machine: Machine) -> None:
    machine.offer("1.1.0", AGENT)
    machine.offer("1.1.0", SERVER)
    await machine.advance(0)
    assert machine.switched == [(SERVER, "1.1.0"), (AGENT, "1.1.0")]


async def test_asks_once_a_minute(machine: Machine) -> None:
    machine.offer("1.0.0")
    await machine.advance(10 * CHECK_INTERVAL + 1)
    assert len(machine.checks) == 11
    assert machine.outcomes == []


async def test_update_waits_until_it_may_interrupt_the_machine(machine: Machine) -> None:
    machine.denial = "the arm moves"
    machine.offer("1.1.0")
    await machine.advance(3 * CHECK_INTERVAL)
    assert machine.switched == []
    # Reported once, with the time since when it waits.
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.WAITING)]
    assert machine.reports[0].reason == "the arm moves"
    assert machine.progress.products[SERVER].since == machine.reports[0].since
    machine.denial = None
    await machine.advance(DECISION_INTERVAL)
    assert machine.switched == [(SERVER, "1.1.0")]


async def test_another_reason_to_wait_is_reported(machine: Machine) -> None:
    machine.denial = "the arm moves"
    machine.offer("1.1.0")
    await machine.advance(1)
    machine.denial = "outside of the window"
    await machine.advance(DECISION_INTERVAL)
    assert [each.reason for each in machine.reports] == ["the arm moves", "outside of the window"]
    assert machine.reports[0].since == machine.reports[1].since


async def test_version_that_does_not_work_is_tried_once(machine: Machine) -> None:
    machine.faults["1.1.0"] = SwitchFailed("it crashed")
    machine.offer("1.1.0")
    state = machine.states[SERVER]
    machine.states[SERVER] = state.reject("1.1.0", "it crashed", 0)
    await machine.advance(5 * CHECK_INTERVAL)
    assert machine.switched == []
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.ROLLED_BACK)]
    assert machine.reports[0].reason == "it crashed"


async def test_failed_switch_is_reported_with_its_reason(machine: Machine) -> None:
    machine.faults["1.1.0"] = SwitchFailed("it crashed")
    machine.offer("1.1.0")
    await machine.advance(0)
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.ROLLED_BACK)]
    assert machine.progress.products[SERVER].detail == "it crashed"


async def test_bad_release_is_rejected_for_good(machine: Machine) -> None:
    machine.faults["1.1.0"] = BadRelease("its signature is wrong")
    machine.offer("1.1.0")
    await machine.advance(3 * CHECK_INTERVAL)
    assert machine.switched == [(SERVER, "1.1.0")]
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.FAILED)]
    assert "1.1.0" in machine.states[SERVER].failed


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), CogworkError("busy")])
async def test_fault_of_the_computer_is_tried_again(machine: Machine, fault: Exception) -> None:
    machine.faults["1.1.0"] = fault
    machine.offer("1.1.0")
    await machine.advance(0)
    assert machine.progress.products[SERVER].phase == "failed"
    assert machine.outcomes == []
    machine.faults.clear()
    await machine.advance(CHECK_INTERVAL)
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.GOOD)]


async def test_person_can_ask_for_another_try(machine: Machine) -> None:
    machine.states[SERVER] = machine.states[SERVER].reject("1.1.0", "it crashed", 0)
    machine.offer("1.1.0")
    await machine.advance(CHECK_INTERVAL)
    assert machine.switched == []
    machine.layout.retry.touch()
    await machine.advance(CHECK_INTERVAL)
    assert machine.switched == [(SERVER, "1.1.0")]
    assert not machine.layout.retry.exists()


async def test_older_version_waits_for_a_person(machine: Machine) -> None:
    machine.layout.switch(SERVER, "1.2.0")
    machine.offer("1.1.0")
    await machine.advance(CHECK_INTERVAL)
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.WAITING)]
    assert "cogwork-agent allow" in machine.reports[0].reason
    machine.layout.allowed(SERVER).write_text("1.1.0\n")
    await machine.advance(DECISION_INTERVAL)
    assert machine.switched == [(SERVER, "1.1.0")]
    # It was allowed once.
    assert not machine.layout.allowed(SERVER).exists()


async def test_older_version_of_a_rollback_needs_no_person(machine: Machine) -> None:
    machine.layout.switch(SERVER, "1.2.0")
    machine.offer("1.1.0", is_rollback=True)
    await machine.advance(0)
    assert machine.switched == [(SERVER, "1.1.0")]


@pytest.mark.parametrize("is_rollback", [False, True])
async def test_nothing_goes_below_the_minimum(machine: Machine, is_rollback: bool) -> None:
    machine.layout.switch(SERVER, "1.2.0")
    machine.minimums.raise_to(SERVER, Minimum("1.2.0", "1.2.0"))
    machine.layout.allowed(SERVER).write_text("1.1.0")
    machine.offer("1.1.0", is_rollback=is_rollback)
    await machine.advance(3 * CHECK_INTERVAL)
    assert machine.switched == []
    assert machine.outcomes == [(SERVER, "1.1.0", Outcome.FAILED)]
    assert machine.progress.products[SERVER].phase == "refused"


async def test_source_that_is_away_is_shown_and_asked_again(machine: Machine) -> None:
    machine.is_away = True
    machine.offer("1.1.0")
    await machine.advance(CHECK_INTERVAL)
    seen = [(machine.updater.has_checked.is_set(), machine.progress.source_fault)]
    machine.is_away = False
    await machine.advance(CHECK_INTERVAL)
    seen.append((machine.updater.has_checked.is_set(), machine.progress.source_fault))
    assert seen == [(False, "the cloud is away"), (True, None)]
    assert machine.switched == [(SERVER, "1.1.0")]


async def test_outcome_that_cannot_be_reported_stops_nothing(machine: Machine) -> None:
    machine.takes_reports = False
    machine.offer("1.1.0")
    machine.offer("1.1.0", AGENT)
    await machine.advance(0)
    assert machine.switched == [(SERVER, "1.1.0"), (AGENT, "1.1.0")]


async def test_release_is_fetched_installed_and_switched_to(machine: Machine) -> None:
    archive = machine.releases.make(SERVER, "2.0.0", "print('2.0.0')")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert await machine.offer_release(archive, sha256=digest) == "current"
    assert machine.layout.current_version(SERVER) == "2.0.0"
    assert machine.outcomes == [(SERVER, "2.0.0", Outcome.GOOD)]
    assert machine.downloads == []


async def test_release_is_installed_and_not_switched_to_outside_of_the_window(
    machine: Machine,
) -> None:
    machine.denial = "outside of the window"
    archive = machine.releases.make(SERVER, "2.0.0", "print('2.0.0')")
    assert await machine.offer_release(archive) == "waiting"
    assert "2.0.0" in machine.layout.installed(SERVER)
    assert machine.layout.current_version(SERVER) == "1.0.0"
    archive.unlink()
    machine.denial = None
    await machine.advance(DECISION_INTERVAL)
    assert machine.switched == [(SERVER, "2.0.0")]


async def test_release_that_is_not_trusted_is_never_installed(machine: Machine) -> None:
    assert await machine.offer_release(machine.make_untrusted()) == "failed"
    assert "not signed by a key" in machine.states[SERVER].failed["2.0.0"].reason
    assert machine.outcomes == [(SERVER, "2.0.0", Outcome.FAILED)]
    assert "2.0.0" not in machine.layout.installed(SERVER)
    assert machine.downloads == []


@pytest.mark.parametrize(("product", "version"), [(SERVER, "1.9.0"), (AGENT, "2.0.0")])
async def test_release_of_something_else_is_not_installed(
    machine: Machine, product: Product, version: str
) -> None:
    archive = machine.releases.make(product, version, f"print('{version}')")
    assert await machine.offer_release(archive) == "failed"
    reason = machine.states[SERVER].failed["2.0.0"].reason
    assert f"contains {product} {version}, not server 2.0.0" in reason
    assert version not in machine.layout.installed(product)


async def test_release_that_was_damaged_on_its_way_is_fetched_again(machine: Machine) -> None:
    archive = machine.make_untrusted()
    assert await machine.offer_release(archive, sha256="0" * 64) == "failed"
    assert "was damaged during the download" in machine.progress.products[SERVER].detail
    assert machine.outcomes == []
    assert machine.states[SERVER].failed == {}
    machine.targets[SERVER] = UpdateTarget("2.0.0", archive.as_uri())
    await machine.advance(CHECK_INTERVAL)
    # It has arrived: what is wrong with it is another thing.
    await wait_until(lambda: machine.reports)
    assert "not signed by a key" in machine.reports[0].reason


async def test_downloads_of_long_ago_are_removed(machine: Machine) -> None:
    machine.layout.downloads.mkdir()
    old = machine.layout.downloads / "old.tar.part"
    old.touch()
    os.utime(old, (0, 0))
    await machine.offer_release(machine.make_untrusted())
    assert not old.exists()


async def test_version_on_trial_is_not_called_current(machine: Machine) -> None:
    machine.states[SERVER] = machine.states[SERVER].begin_trial("1.0.0", None, 0.0)
    machine.offer("1.0.0")
    await machine.advance(0)
    assert machine.trials == [{SERVER}]
    assert machine.phase == "switching"
    machine.states[SERVER] = machine.states[SERVER].accept("1.0.0")
    await machine.advance(CHECK_INTERVAL)
    assert machine.trials == [{SERVER}, set()]
    assert machine.phase == "current"

"""Rollouts in the records: which version a part gets, and what its reports change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.cloud.organization import OwnedOrganization
from tests.support.cloud.small_cloud import SmallCloud
from tests.support.cloud.tenants import Tenant

from cogwork.cloud.fleet.part_software import Software
from cogwork.cloud.storage.blobs import Blob
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import TrialRow
from cogwork.cloud.updates.release_archive import ArchiveManifest
from cogwork.cloud.updates.releases import ReleaseExists, add_release, list_releases
from cogwork.cloud.updates.rollout import Counts, Rollout, RolloutState
from cogwork.cloud.updates.rollout_status import format_status, read_status
from cogwork.cloud.updates.rollouts import (
    RolloutPlan,
    check_failures,
    count_trials,
    find_newest,
    list_newest,
    note_outcome,
    offer,
    pause_rollout,
    resume_rollout,
    select_rollouts,
    start_rollout,
    widen_rollout,
)
from cogwork.cloud.updates.update_choice import CUSTOM_URL, Update, choose_update
from cogwork.cloud.updates.version_control import (
    Channel,
    CustomUrl,
    InvalidSource,
    PinnedVersion,
    Source,
)
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome, UpdateReport

SERVER = Product.SERVER
LINUX, ARM = "linux/amd64", "linux/arm64"
STABLE = Channel("stable")
ALL = RolloutPlan(stages=(100,))
ORIGIN = "https://fleet.test"
MINUTE = 60_000_000


@dataclass
class Fleet:
    cloud: SmallCloud

    def do(self, work: Any, *arguments: Any) -> Any:
        """Run a function of a transaction."""

        def run(tx: Transaction) -> Any:
            return work(tx, *arguments)

        return self.cloud.write(run)

    @property
    def now(self) -> int:
        return int(self.cloud.clock.time() * 1e6)

    def release(self, version: str, platform: str = LINUX, minimum: str = "") -> None:
        manifest = ArchiveManifest(SERVER, version, platform, minimum)
        digest = (version + platform).encode().hex().ljust(64, "0")
        self.do(add_release, manifest, Blob(digest, 7, 0), self.now)

    def roll_out(self, version: str, plan: RolloutPlan = ALL) -> Rollout:
        found: Rollout = self.do(start_rollout, "stable", SERVER, version, plan, self.now)
        return found

    def choose(
        self, part: str = "part", current: str = "1.0.0", source: Source = STABLE, **software: Any
    ) -> Update:
        given = {"running": current, "installed": current, "platform": LINUX, **software}
        found: Update = self.do(choose_update, source, SERVER, part, Software(**given), ORIGIN)
        return found

    def report(self, rollout: Rollout, part: str, outcome: Outcome) -> bool:
        report = UpdateReport(SERVER, rollout.version, outcome, reason="because")
        return bool(self.do(note_outcome, rollout, part, report, self.now))

    def offer(self, rollout: Rollout, *parts: str) -> None:
        for part in parts:
            self.do(offer, rollout, part, "1.0.0", self.now)

    def newest(self) -> Rollout:
        found: Rollout = self.do(find_newest, "stable", SERVER)
        return found


def add_part(tx: Transaction, part: str, tenant: Tenant) -> None:
    """Add a part whose ID is easy to read."""
    tx.execute(
        "INSERT INTO part (id, organization_id, machine_id, name, is_main, config, revision, "
        "created_at, updated_at) VALUES (?, ?, ?, ?, 0, '{}', 0, 0, 0)",
        *(part, tenant.organization, tenant.machine, part),
    )


def version_of(update: Update) -> str | None:
    """Return the version that is to be installed; None to keep what is there."""
    return None if update.info is None else update.info.version


@pytest.fixture
def fleet(acme: OwnedOrganization) -> Fleet:
    made = Fleet(acme.cloud)
    for part in ("part", *"abc"):
        made.do(add_part, part, acme.tenant)
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        made.release(version)
    return made


def test_part_of_a_channel_gets_its_version(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0")
    found = fleet.choose()
    assert (version_of(found), found.hindrance) == ("2.0.0", "")
    assert found.info is not None
    assert found.info.url.startswith(f"{ORIGIN}/releases/")
    assert found.info.sha256
    assert found.offered_by == rollout
    # It is offered once.
    fleet.offer(rollout, "part")
    assert fleet.choose().offered_by is None


def test_channel_without_a_rollout_keeps_what_runs(fleet: Fleet) -> None:
    assert version_of(fleet.choose()) is None
    assert fleet.choose().hindrance == ""
    found = fleet.choose(source=Channel("beta"))
    assert "roll one out" in found.hindrance


def test_other_platform_keeps_its_version_and_says_why(fleet: Fleet) -> None:
    fleet.roll_out("2.0.0")
    found = fleet.choose(platform=ARM)
    assert version_of(found) is None
    assert "is not released for linux/arm64, only for linux/amd64" in found.hindrance
    fleet.release("2.0.0", ARM)
    assert version_of(fleet.choose(platform=ARM)) == "2.0.0"


@pytest.mark.parametrize(
    ("source", "version", "hindrance"),
    [
        (PinnedVersion("1.1.0"), "1.1.0", ""),
        (PinnedVersion("9.9.9"), None, "there is no release of server 9.9.9"),
        (CustomUrl("https://example.test/x.tar"), CUSTOM_URL, ""),
        (InvalidSource("it is not a version"), None, "it is not a version"),
    ],
    ids=["pinned", "missing", "custom", "invalid"],
)
def test_configuration_may_name_another_source(
    fleet: Fleet, source: Source, version: str | None, hindrance: str
) -> None:
    fleet.roll_out("2.0.0")
    found = fleet.choose(source=source)
    assert (version_of(found), found.hindrance) == (version, hindrance)


def test_part_that_failed_keeps_what_it_had(fleet: Fleet) -> None:
    fleet.roll_out("1.1.0")
    rollout = fleet.roll_out("2.0.0")
    fleet.offer(rollout, "part")
    assert fleet.report(rollout, "part", Outcome.ROLLED_BACK)
    assert version_of(fleet.choose(current="1.1.0")) == "1.1.0"
    # Other parts still get it.
    assert version_of(fleet.choose("another", current="1.1.0")) == "2.0.0"


def test_failure_stays_one_and_what_works_is_not_waiting_again(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0")
    fleet.offer(rollout, "a", "b")
    assert fleet.report(rollout, "a", Outcome.FAILED)
    assert not fleet.report(rollout, "a", Outcome.GOOD)
    assert fleet.report(rollout, "b", Outcome.GOOD)
    assert not fleet.report(rollout, "b", Outcome.WAITING)
    assert fleet.do(count_trials, rollout) == Counts(good=1, failed=1, waiting=0)


def test_part_that_had_the_version_before_proves_nothing(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0")
    assert not fleet.report(rollout, "part", Outcome.GOOD)
    assert fleet.do(count_trials, rollout) == Counts()
    assert fleet.report(rollout, "part", Outcome.FAILED)


def test_rollout_with_failures_pauses_until_it_is_resumed(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0", RolloutPlan())
    fleet.offer(rollout, "a", "b", "c")
    for part in "abc":
        fleet.report(rollout, part, Outcome.FAILED)
    paused = fleet.do(check_failures, fleet.newest(), fleet.now)
    assert paused.state is RolloutState.PAUSED
    assert "3 of 3 machines failed" in paused.pause_reason
    assert fleet.newest() == paused
    assert version_of(fleet.choose("d")) == "1.0.0"
    fleet.cloud.advance(1)
    resumed = fleet.do(resume_rollout, "stable", SERVER, fleet.now)
    assert resumed.state is RolloutState.RUNNING
    # What was seen does not count again.
    assert fleet.do(check_failures, resumed, fleet.now) == resumed


def test_rollout_is_shown_as_complete_only_when_machines_are_updated(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0")

    def read_state() -> RolloutState:
        (status,) = fleet.do(read_status)
        assert f"server 2.0.0  {status.state}" in format_status([status])
        assert status.as_json()["state"] == status.state
        found: RolloutState = status.state
        return found

    assert rollout.state is RolloutState.COMPLETE  # it reaches every machine
    assert read_state() is RolloutState.RUNNING
    fleet.offer(rollout, "a", "b")
    fleet.report(rollout, "a", Outcome.GOOD)
    assert read_state() is RolloutState.RUNNING
    fleet.report(rollout, "b", Outcome.GOOD)
    assert read_state() is RolloutState.COMPLETE


def test_rollout_is_paused_by_hand_once(fleet: Fleet) -> None:
    fleet.roll_out("2.0.0", RolloutPlan())
    paused = fleet.do(pause_rollout, "stable", SERVER, fleet.now)
    assert paused.pause_reason == "paused by hand"
    fleet.cloud.advance(5)
    assert fleet.do(pause_rollout, "stable", SERVER, fleet.now) == paused


def test_rollout_widens_when_its_last_machines_are_well(fleet: Fleet) -> None:
    rollout = fleet.roll_out("2.0.0", RolloutPlan(stages=(10, 100), stage_time=MINUTE))
    fleet.offer(rollout, "a", "b", "c")
    fleet.cloud.advance(600)
    assert fleet.do(widen_rollout, rollout, fleet.now) == rollout  # nothing is known yet
    for part in "abc":
        fleet.report(rollout, part, Outcome.GOOD)
    wider = fleet.do(widen_rollout, rollout, fleet.now)
    assert (wider.stage, wider.reach) == (1, 20)
    assert fleet.newest() == wider


def test_next_version_takes_the_place_of_the_one_before(fleet: Fleet) -> None:
    first = fleet.roll_out("1.1.0")
    second = fleet.roll_out("2.0.0")
    assert [each.id for each in fleet.do(select_rollouts, "stable", SERVER)] == [
        second.id,
        first.id,
    ]
    assert [each.id for each in fleet.do(list_newest)] == [second.id]


def test_only_the_last_rollouts_are_kept(fleet: Fleet) -> None:
    rollouts = []
    for number in range(10):
        fleet.release(f"3.0.{number}")
        rollouts.append(fleet.roll_out(f"3.0.{number}"))
        fleet.offer(rollouts[-1], "part")
    kept = fleet.do(select_rollouts, "stable", SERVER)
    assert [each.version for each in kept] == [f"3.0.{number}" for number in range(9, 1, -1)]
    trials = fleet.do(lambda tx: select(tx, TrialRow))
    assert len(trials) == len(kept)


@pytest.mark.parametrize(
    ("version", "plan", "message"),
    [
        ("9.9.9", ALL, "no release of server 9.9.9"),
        ("2.0.0", ALL, "already has server 2.0.0"),
        ("1.1.0", ALL, "add --rollback"),
        ("1.1.0", RolloutPlan(stages=()), "ascending percentages"),
        ("1.1.0", RolloutPlan(stages=(0, 100)), "ascending percentages"),
        ("1.1.0", RolloutPlan(stages=(50, 10, 100)), "ascending percentages"),
        ("1.1.0", RolloutPlan(stages=tuple(range(1, 101))), "ascending percentages"),
        ("1.1.0", RolloutPlan(stages=(1, 50)), "last stage must be 100"),
        ("1.1.0", RolloutPlan(max_failures=101), "from 0 to 100 percent"),
    ],
)
def test_rollout_that_cannot_be_started(
    fleet: Fleet, version: str, plan: RolloutPlan, message: str
) -> None:
    fleet.roll_out("2.0.0")
    with pytest.raises((InvalidRequest, NotFound), match=message):
        fleet.roll_out(version, plan)


def test_rollback_takes_machines_back(fleet: Fleet) -> None:
    fleet.roll_out("2.0.0")
    fleet.roll_out("1.1.0", RolloutPlan(stages=(100,), is_rollback=True))
    found = fleet.choose(current="2.0.0")
    assert (version_of(found), found.is_rollback) == ("1.1.0", True)


def test_nothing_is_rolled_out_below_the_minimum(fleet: Fleet) -> None:
    fleet.release("2.1.0", minimum="2.0.0")
    with pytest.raises(InvalidRequest, match=r"minimum_version of 2\.1\.0"):
        fleet.roll_out("1.1.0", RolloutPlan(stages=(100,), is_rollback=True))
    fleet.roll_out("2.0.0")


def test_release_never_changes(fleet: Fleet) -> None:
    before = fleet.do(list_releases)
    fleet.release("2.0.0")  # the same again
    assert fleet.do(list_releases) == before
    manifest = ArchiveManifest(SERVER, "2.0.0", LINUX)
    with pytest.raises(ReleaseExists, match="a new version"):
        fleet.do(add_release, manifest, Blob("ff" * 32, 7, 0), fleet.now)

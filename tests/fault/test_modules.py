"""A module that fails in any way is reported and restarted, and affects no other module."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.modules import make
from tests.support.machine.bad_modules import (
    DEADLINE,
    MARK,
    NO_PAUSE,
    READY,
    SHORT,
    SOON,
    Config,
    ModuleMachine,
    Size,
    bad_module,
    config,
    environment_of,
    find_marked,
    module_in,
    own_size,
    ready,
    resource_in,
    rogue_module,
    run_module_machine,
    thing,
    unhealthy,
    wait_until,
    zombies,
)
from tests.support.machine.running import run_server, with_free_port
from tests.support.sizes import FULL, limit, size
from tests.support.waiting import pass_time
from tests.support.waiting import wait_until as until

from cogwork.core.backoff import RetryPolicy
from cogwork.modules.context import Deadlines
from cogwork.modules.module import Module
from cogwork.resource.sdk import clean_import as sdk
from cogwork.serving.shutdown import SIGNAL_DEBOUNCE

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402

PAUSES = RetryPolicy(0.5, 0.5)
"""Long enough to be seen."""
LITTLE = limit(1.0)
"""Seconds within which what has nothing to do with a fault is done, on a computer that is busy."""

BAD = "acme:bad:thing"
GOOD = "acme:good:thing"
FAKE = {"name": "builtin", "api": "rdk:component:generic", "model": "fake"}


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[ModuleMachine]:
    async with run_module_machine(tmp_path, pauses=PAUSES) as machine:
        yield machine


@pytest.fixture
def disable_logging() -> Iterator[None]:
    """Disable logging: pytest keeps log records, which would look like a leak."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def good_and_bad_config(directory: Path, words: str, **env: str) -> Config:
    """A good module and a bad one, a resource of each, one that depends on the bad one's, and one
    that has nothing to do with modules."""
    modules = [rogue_module(directory, "bad", words, **env), rogue_module(directory, "good")]
    dependent = {**FAKE, "name": "dependent", "depends_on": ["b"]}
    return config(modules, [thing("b", BAD), thing("g", GOOD), dependent, FAKE])


async def check_others_work(machine: ModuleMachine) -> float:
    """Return the milliseconds of the slower of two small calls."""
    slowest = 0.0
    for name in ("g", "builtin"):
        began = time.monotonic()
        assert await machine.thing(name).do_command({"a": 1}, timeout=DEADLINE) == {"a": 1.0}
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < LITTLE
    return slowest * 1000


async def pid_of(machine: ModuleMachine, name: str) -> int:
    pid = machine.modules.by_name[name].pid
    assert pid is not None
    return pid


async def test_module_that_exits_with_0_is_told_to_keep_serving(machine: ModuleMachine) -> None:
    done = {"name": "bad", "type": "local", "executable_path": "/bin/true"}
    machine.apply(config([done], [FAKE]))
    await machine.wait_until(
        unhealthy("bad", "exited with code 0 before it was ready; a module must serve until")
    )
    await machine.wait_until(ready("builtin"), within=SOON)


async def test_module_that_exits_at_start_is_reported_with_its_last_lines(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    machine.apply(good_and_bad_config(tmp_path, "exit(start)"))

    seconds = await machine.wait_until(unhealthy("bad", "exited with code 5"))
    await machine.wait_until(ready("g", "builtin"), within=SOON)

    assert seconds < SOON
    status = await machine.status()
    module = module_in(status, "bad")
    assert "(last line: RuntimeError: the device is not there)" in module.error
    assert module.error.endswith("\nTraceback of the rogue\nRuntimeError: the device is not there")
    assert "restarting in 0.5s" in module.error
    assert module.consecutive_failures >= 1
    for name in ("b", "dependent"):
        assert "RuntimeError: the device is not there" in resource_in(status, name).error
    print(f"exit at start: told {seconds * 1000:.0f} ms after the configuration")
    await check_others_work(machine)


EXITS = {
    "exit(AddResource)": "exited with code 5",
    "crash(AddResource)": "was killed by SIGSEGV",
    "exit(ValidateConfig)": "exited with code 5",
}


@pytest.mark.parametrize("words", EXITS)
async def test_module_that_ends_in_add_resource_adds_it_after_the_restart(
    machine: ModuleMachine, tmp_path: Path, words: str
) -> None:
    machine.apply(good_and_bad_config(tmp_path, words, ONCE=str(tmp_path / "once")))

    seconds = await machine.wait_until(unhealthy("bad", EXITS[words]))
    await machine.wait_until(unhealthy("b", EXITS[words]), within=SOON)
    await machine.wait_until(unhealthy("dependent", EXITS[words]), within=SOON)
    await machine.wait_until(ready("g", "builtin"), within=SOON)
    await check_others_work(machine)
    back = await machine.wait_until(ready())

    assert seconds < SOON
    print(f"{words}: told after {seconds * 1000:.0f} ms, all ready {back * 1000:.0f} ms later")
    assert await machine.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}
    assert machine.modules.by_name["bad"].starts == 2


async def test_module_that_ends_in_reconfigure_returns_with_the_change(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    wanted = good_and_bad_config(
        tmp_path, "exit(ReconfigureResource)", NOTES=str(notes), ONCE=str(tmp_path / "once")
    )
    # A resource with a dependent is rebuilt instead of reconfigured.
    del wanted["components"][2]
    machine.apply(wanted)
    await machine.wait_until(ready())

    wanted["components"][0] = thing("b", BAD, colour="vermilion")
    machine.apply(wanted)
    seconds = await machine.wait_until(unhealthy("b", "exited with code 5"))
    await check_others_work(machine)
    back = await machine.wait_until(ready())

    assert seconds < SOON
    added = [line for line in notes.read_text().splitlines() if "AddResource" in line]
    assert len(added) == 2
    assert "vermilion" in added[1]
    print(
        f"exit in reconfigure: told after {seconds * 1000:.0f} ms, back {back * 1000:.0f} ms later"
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
async def test_killed_module_is_reported_and_its_dependents_are_repaired(
    machine: ModuleMachine, tmp_path: Path, number: signal.Signals
) -> None:
    machine.apply(good_and_bad_config(tmp_path, ""))
    await machine.wait_until(ready())
    before = machine.machine.nodes

    generations = {name.short: node.held.generation for name, node in before.items() if node.held}
    os.kill(await pid_of(machine, "bad"), number)
    seconds = await machine.wait_until(unhealthy("b", f"was killed by {number.name}"))
    await machine.wait_until(unhealthy("dependent", number.name), within=SOON)
    with pytest.raises(GRPCError) as refused:
        await machine.thing("b").do_command({"b": 2}, timeout=DEADLINE)
    await check_others_work(machine)
    back = await machine.wait_until(ready())

    assert seconds < SOON
    assert refused.value.status is Status.UNAVAILABLE
    assert number.name in str(refused.value.message)
    after = {name.short: node.held.generation for name, node in before.items() if node.held}
    changed = {name for name in after if after[name] != generations[name]}
    assert changed == {"b", "dependent"}
    print(f"{number.name}: told after {seconds * 1000:.0f} ms, back {back * 1000:.0f} ms later")


async def test_calls_in_progress_end_with_the_killed_process(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    machine.apply(good_and_bad_config(tmp_path, "hang(DoCommand)"))
    await machine.wait_until(ready())

    calls = [
        asyncio.ensure_future(machine.thing("b").do_command({"b": 2}, timeout=DEADLINE))
        for _ in range(50)
    ]
    await check_others_work(machine)
    began = time.monotonic()
    os.kill(await pid_of(machine, "bad"), signal.SIGKILL)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    seconds = time.monotonic() - began

    assert seconds < SOON
    assert {each.status for each in answers if isinstance(each, GRPCError)} == {Status.UNAVAILABLE}
    print(f"50 calls under way ended {seconds * 1000:.0f} ms after their module was killed")


HANGS = {
    "hang(start)": ("was not ready within 3s", SHORT.start),
    "hang(Ready)": ("was not ready within 3s", SHORT.start),
    "block(Ready)": ("was not ready within 3s", SHORT.start),
    "hang(ValidateConfig)": ("did not reply to ValidateConfig within 1.5s", SHORT.validate),
    "hang(AddResource)": ("did not reply to AddResource within 1.5s", SHORT.add),
    "block(AddResource)": ("did not reply to AddResource within 1.5s", SHORT.add),
}


@pytest.mark.parametrize("words", HANGS)
async def test_hanging_module_times_out_and_delays_no_other(
    machine: ModuleMachine, tmp_path: Path, words: str
) -> None:
    reason, limit = HANGS[words]
    began = time.monotonic()
    machine.apply(good_and_bad_config(tmp_path, words))
    await machine.wait_until(ready("g", "builtin"))
    others = time.monotonic() - began
    worst = await check_others_work(machine)

    await machine.wait_until(unhealthy("b", reason))
    seconds = time.monotonic() - began

    assert others < limit
    assert seconds < limit + SOON
    await machine.wait_until(unhealthy("dependent", reason), within=SOON)
    await check_others_work(machine)
    print(
        f"{words}: given up after {seconds:.2f} s (limit {limit:g} s); others ready after "
        f"{others * 1000:.0f} ms, a call of theirs {worst:.1f} ms"
    )


async def test_module_that_hangs_once_recovers(machine: ModuleMachine, tmp_path: Path) -> None:
    machine.apply(good_and_bad_config(tmp_path, "hang(start)", ONCE=str(tmp_path / "once")))

    await machine.wait_until(unhealthy("bad", "was not ready within 3s"))
    await machine.wait_until(ready())

    assert (await machine.module("bad")).error == ""


@pytest.mark.parametrize("words", ["hang(RemoveResource)", "block(RemoveResource)"])
async def test_module_that_hangs_in_remove_resource_delays_no_change(
    machine: ModuleMachine, tmp_path: Path, words: str
) -> None:
    wanted = good_and_bad_config(tmp_path, words)
    machine.apply(wanted)
    await machine.wait_until(ready())

    wanted["components"] = [thing("g", GOOD), thing("later", GOOD), FAKE]
    began = time.monotonic()
    outcome = machine.apply(wanted)
    others = await machine.wait_until(ready("later"))
    await check_others_work(machine)
    await asyncio.wait_for(outcome, DEADLINE)
    seconds = time.monotonic() - began

    assert others < SHORT.remove
    assert seconds < SHORT.remove + SOON
    assert "b" not in {name.short for name in machine.machine.nodes}
    print(f"{words}: over after {seconds:.2f} s; another was there after {others * 1000:.0f} ms")


async def test_hanging_call_ends_at_its_deadline_and_delays_no_other(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    machine.apply(good_and_bad_config(tmp_path, "hang(DoCommand)"))
    await machine.wait_until(ready())

    began = time.monotonic()
    calls = [
        asyncio.ensure_future(machine.thing("b").do_command({"b": 2}, timeout=0.5))
        for _ in range(50)
    ]
    worst = max([await check_others_work(machine) for _ in range(20)])
    answers = await asyncio.gather(*calls, return_exceptions=True)
    seconds = time.monotonic() - began

    assert {each.status for each in answers if isinstance(each, GRPCError)} == {
        Status.DEADLINE_EXCEEDED
    }
    assert seconds < 0.5 + SOON
    assert (await machine.module("bad")).error == ""
    print(f"50 calls that hang: over after {seconds:.2f} s; others' slowest {worst:.1f} ms")


async def test_module_that_is_not_ready_yet_is_asked_again(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    machine.apply(good_and_bad_config(tmp_path, "unready(3)"))

    await machine.wait_until(ready("g", "builtin"), within=SOON)
    assert not ready("b")(await machine.status())
    seconds = await machine.wait_until(ready())

    module = await machine.module("bad")
    assert (module.error, module.consecutive_failures) == ("", 0)
    assert machine.modules.by_name["bad"].starts == 1
    print(f"not ready three times: ready {seconds:.2f} s after the others")


async def test_suspended_module_is_reported_and_resumes_unchanged(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    machine.apply(good_and_bad_config(tmp_path, ""))
    await machine.wait_until(ready())
    pid = await pid_of(machine, "bad")

    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(GRPCError) as refused:
        await machine.thing("b").do_command({"b": 2}, timeout=0.3)
    bounded = time.monotonic() - began
    await machine.wait_until(unhealthy("bad", f"(process {pid}) runs but does not respond"))
    await machine.wait_until(unhealthy("b", "does not respond"))
    told = time.monotonic() - began
    await check_others_work(machine)
    os.kill(pid, signal.SIGCONT)
    back = await machine.wait_until(ready())

    assert refused.value.status is Status.DEADLINE_EXCEEDED
    assert bounded < 0.3 + LITTLE
    assert told < 2 * SHORT.probe + SOON
    assert await machine.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}
    assert await pid_of(machine, "bad") == pid
    print(f"SIGSTOP: told after {told:.2f} s, back {back * 1000:.0f} ms after SIGCONT")


SDK_ROWS = {
    "exit-in-add": "exited with code 5 (last line: exits in add)",
    "exit-in-call": "exited with code 5 (last line: exits in call)",
    "exit-in-reconfigure": "exited with code 5 (last line: exits in reconfigure)",
    "exit-at-start": "exited with code 3 (last line: RuntimeError: the device is not there)",
    "exit-after-ready": "exited with code 4",
    "hang-at-start": "was not ready within 4s",
    "hang-in-ready": "was not ready within 4s",
    "hang-in-ready blocking": "was not ready within 4s",
    "hang-in-add": "did not reply to AddResource within 0.5s",
    "hang-in-add blocking": "did not reply to AddResource within 0.5s",
    "stop": "does not respond",
}


@pytest.mark.parametrize("mode", SDK_ROWS if FULL else [*SDK_ROWS][:1])
async def test_sdk_module_failures_are_reported_alike(tmp_path: Path, mode: str) -> None:
    deadlines = Deadlines(start=4.0, add=0.5, remove=0.5, probe=0.5)
    what, _, how = mode.partition(" ")
    modules = [bad_module(tmp_path, "bad", what, HANG=how), rogue_module(tmp_path, "good")]
    async with run_module_machine(tmp_path, deadlines, PAUSES) as machine:
        machine.apply(config(modules, [thing("b", BAD), thing("g", GOOD), FAKE]))
        others = await machine.wait_until(ready("g", "builtin"))
        if mode == "exit-in-call":
            await machine.wait_until(ready("b"))
            with pytest.raises(GRPCError) as refused:
                await machine.thing("b").do_command({}, timeout=DEADLINE)
            assert refused.value.status is Status.UNAVAILABLE
        if mode == "exit-in-reconfigure":
            await machine.wait_until(ready("b"))
            machine.apply(config(modules, [thing("b", BAD, a=1), thing("g", GOOD), FAKE]))
        seconds = await machine.wait_until(unhealthy("b", SDK_ROWS[mode]))
        worst = await check_others_work(machine)
    print(
        f"SDK, {mode}: told after {seconds:.2f} s; others ready after {others * 1000:.0f} ms, "
        f"a call of theirs {worst:.1f} ms"
    )


CROWDS = [
    ("killed", "bomb"),
    ("killed", "daemon"),
    ("removed", "daemon"),
    ("removed", "deaf bomb daemon"),
]
MORE_CROWDS = [
    ("killed", "deaf"),
    ("killed", "deaf bomb daemon"),
    ("removed", "bomb"),
    ("removed", "deaf"),
]


@pytest.mark.parametrize(("end", "words"), [*CROWDS, *(MORE_CROWDS if FULL else ())])
async def test_no_process_outlives_its_module(
    machine: ModuleMachine, tmp_path: Path, end: str, words: str
) -> None:
    wanted = good_and_bad_config(
        tmp_path, words, **({"ONCE": str(tmp_path / "once")} if end == "killed" else {})
    )
    machine.apply(wanted)
    await machine.wait_until(ready())
    pid = await pid_of(machine, "bad")
    crowd = 2 + 32 * ("bomb" in words) + ("daemon" in words)
    await until(lambda: len(find_marked(machine.mark)) >= crowd)
    worst = await check_others_work(machine)

    began = time.monotonic()
    if end == "killed":
        os.kill(pid, signal.SIGKILL)
        seconds = await machine.wait_until(unhealthy("b", "was killed by SIGKILL"))
        assert seconds < SOON
        await machine.wait_until(ready())
        left = {pid_of_good(machine), await pid_of(machine, "bad")}
    else:
        wanted["modules"] = wanted["modules"][1:]
        machine.apply(wanted)
        left = {pid_of_good(machine)}
    await until(lambda: set(find_marked(machine.mark)) == left and not zombies(os.getpid()))
    print(
        f"{words} {end}: {crowd - 1} processes gone after {time.monotonic() - began:.2f} s; "
        f"others' slowest call {worst:.1f} ms"
    )


def pid_of_good(machine: ModuleMachine) -> int:
    pid = machine.modules.by_name["good"].pid
    assert pid is not None
    return pid


async def test_flood_of_stderr_takes_bounded_memory(
    machine: ModuleMachine, tmp_path: Path, disable_logging: None
) -> None:
    much = size(ci=30_000_000, full=1 << 30)
    machine.apply(good_and_bad_config(tmp_path, ""))
    await machine.wait_until(ready())
    before = own_size()

    machine.apply(good_and_bad_config(tmp_path, f"flood({much})", ROUND="2"))
    slowest = 0.0
    began = time.monotonic()
    await machine.wait_until(ready())
    process = psutil.Process(await pid_of(machine, "bad"))
    async with asyncio.timeout(100):
        while process.num_threads() > 1:
            slowest = max(slowest, await check_others_work(machine))
    seconds = time.monotonic() - began
    after = own_size()

    assert after.mib - before.mib < 20
    print(
        f"{much / 1e6:.0f} MB of stderr in {seconds:.1f} s: {before} -> {after}; "
        f"others' slowest call {slowest:.1f} ms"
    )


async def test_model_of_several_modules_is_reported_with_the_one_used(
    machine: ModuleMachine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = {"first": GOOD, "second": GOOD, "third": "rdk:builtin:fake"}
    notes = {name: tmp_path / f"{name}.notes" for name in names}
    modules = [
        rogue_module(tmp_path, name, model=model, NOTES=str(notes[name]))
        for name, model in names.items()
    ]
    machine.apply(config(modules, [thing("g", GOOD), FAKE]))
    await machine.wait_until(lambda status: [each.state for each in status.modules] == [READY] * 3)
    await machine.wait_until(ready("g", "builtin"))

    said = [record.getMessage() for record in caplog.records if "model " in record.getMessage()]
    assert sorted(words for words in said if "provided by" in words or "not used" in words) == [
        f"model {GOOD} is provided by modules first and second; using first, which is first in the "
        "configuration",
        "model rdk:builtin:fake of module third is not used: the server has one of that name in "
        "its own process; uninstall its package, or rename a model",
    ]
    assert "AddResource" in notes["first"].read_text()
    assert "AddResource" not in notes["third"].read_text()


async def test_restart_delay_grows_with_each_failure_and_is_reported(tmp_path: Path) -> None:
    pauses = RetryPolicy(0.05, 0.4)
    async with run_module_machine(tmp_path, pauses=pauses) as machine:
        machine.apply(good_and_bad_config(tmp_path, "exit(start)"))
        await machine.wait_until(lambda status: module_in(status, "bad").consecutive_failures >= 6)
        failed = [each for each in machine.events if each["state"] == "failed"]

        await machine.wait_until(unhealthy("bad", "restarting in 0."))
        assert [each["failures"] for each in failed] == list(range(1, len(failed) + 1))
        for each, wanted in zip(failed, (0.05, 0.1, 0.2, 0.4, 0.4, 0.4), strict=False):
            assert 0.49 * wanted <= each["retry_after"] <= 1.01 * wanted
        print("pauses:", [each["retry_after"] for each in failed])


@pytest.mark.timeout(900)
async def test_many_crashes_leak_nothing(tmp_path: Path, disable_logging: None) -> None:
    times = size(ci=25, full=1000)
    async with run_module_machine(tmp_path, pauses=NO_PAUSE) as machine:
        stub = rogue_module(tmp_path, "bad", "exit(AddResource)")
        good = rogue_module(tmp_path, "good")
        machine.apply(config([stub, good], [thing("b", BAD), thing("g", GOOD), FAKE]))
        bad = machine.modules.by_name["bad"]
        before = await _size_after(bad, times // 5)
        began = time.monotonic()
        after = await _size_after(bad, times // 5 + times)
        seconds = time.monotonic() - began
        print(f"{times} crash-restarts of a stub in {seconds:.0f} s: {before} -> {after}")

        assert after.is_flat_since(before)
        assert not zombies(os.getpid())
        await check_others_work(machine)
        assert machine.modules.by_name["good"].starts == 1


@pytest.mark.timeout(900)
async def test_many_crashes_of_an_sdk_module_leak_nothing(
    tmp_path: Path, disable_logging: None
) -> None:
    times = size(ci=3, full=50)
    async with run_module_machine(tmp_path, Deadlines(), NO_PAUSE) as machine:
        machine.apply(config([bad_module(tmp_path, "bad", "good")], [thing("b", BAD)]))
        await _crash_repeatedly(machine, max(2, times // 10))
        before = own_size()
        began = time.monotonic()
        await _crash_repeatedly(machine, times)
        seconds = time.monotonic() - began
        after = own_size()
        print(f"{times} crash-restarts of an SDK module in {seconds:.0f} s: {before} -> {after}")

        assert after.is_flat_since(before)
        assert await machine.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}


async def _size_after(module: Module, starts: int) -> Size:
    await until(lambda: module.starts >= starts, within=800)
    return own_size()


async def _crash_repeatedly(machine: ModuleMachine, times: int) -> None:
    module = machine.modules.by_name["bad"]
    for _ in range(times):
        await machine.wait_until(ready())
        starts = module.starts
        os.kill(await pid_of(machine, "bad"), signal.SIGKILL)
        await until(lambda: module.starts > starts)  # noqa: B023 - it is awaited at once
    await machine.wait_until(ready())


KINDS = (
    "exit-at-start",
    "hang-in-ready",
    "hang-at-start",
    "exit-after-ready",
    "not-ready",
    "hang-in-add",
    "exit-in-add",
    "stop",
    "fork",
    "flood",
)


@pytest.mark.parametrize("kind", KINDS if FULL else KINDS[:2])
async def test_good_module_is_ready_as_fast_as_without_a_bad_one(tmp_path: Path, kind: str) -> None:
    alone, beside = [], []
    # What the bad one delays, it delays each time; what else this computer does, it does once.
    for _ in range(5):
        alone.append(await _seconds_to_ready(tmp_path, None))
        beside.append(await _seconds_to_ready(tmp_path, kind))
        ratio = statistics.median(beside) / statistics.median(alone)
        print(
            f"{kind:18} good one ready after {statistics.median(beside):.3f} s, alone after "
            f"{statistics.median(alone):.3f} s: {ratio:.2f}"
        )
        if not FULL and ratio < 3:
            break
    assert ratio < (1.5 if FULL else 3)


async def _seconds_to_ready(directory: Path, kind: str | None) -> float:
    """Measure it for five resources of a module that uses the SDK."""
    good = {
        "name": "good",
        "type": "local",
        "executable_path": str(make.sdk_module(directory, "sensor")),
    }
    sensors: list[Config] = [
        {
            "name": f"s{number}",
            "api": "rdk:component:sensor",
            "model": "acme:test:sensor",
            "attributes": {"readings": {"a": 1}},
        }
        for number in range(5)
    ]
    bad = [bad_module(directory, "bad", kind)] if kind is not None else []
    async with run_module_machine(directory, Deadlines()) as machine:
        began = time.monotonic()
        machine.apply(config([*bad, good], [*sensors, *([thing("b", BAD)] if bad else [])]))
        await machine.wait_until(ready(*(each["name"] for each in sensors)))
        return time.monotonic() - began


@pytest.mark.parametrize("hanging", [True, False])
async def test_shutdown_of_many_modules_ends_in_time_and_in_order(
    tmp_path: Path, hanging: bool
) -> None:
    """Each resource depends on the previous one, so that the hanging ones are closed first."""
    notes = tmp_path / "notes"
    words = ["hang(RemoveResource)", "deaf", ""] if hanging else ["", "", ""]
    modules = [rogue_module(tmp_path, f"m{number}", NOTES=str(notes)) for number in range(17)] + [
        rogue_module(tmp_path, f"m{17 + number}", each) for number, each in enumerate(words)
    ]
    things = [
        thing(f"t{number}", f"acme:m{number}:thing", *([f"t{number - 1}"] if number else []))
        for number in range(20)
    ]
    mark = secrets.token_hex(8)
    wanted = with_free_port(config(modules, things))
    async with run_server(wanted, tmp_path, exits=None, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await wait_until(channel, ready(*(each["name"] for each in things)))
        finally:
            channel.close()
        if hanging:
            (stopped,) = [pid for pid in find_marked(mark) if b"acme:m19:" in environment_of(pid)]
            os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        code = await server.exit_code(within=40)
        seconds = time.monotonic() - began
    print(f"20 modules, {'3 hang' if hanging else 'none hangs'}: exit code {code}, {seconds:.1f} s")

    assert not find_marked(mark)
    assert seconds < 20
    removed = [
        re.search(r"/(t\d+)", line)[1]  # type: ignore[index]
        for line in notes.read_text().splitlines()
        if "RemoveResource" in line
    ]
    assert removed == [f"t{number}" for number in reversed(range(17))]
    assert code == (1 if hanging else 0), server.out.text[-3000:]
    if hanging:
        assert "rdk:component:generic/t17 did not close in time" in server.out.text
        assert "module m18 did not close in time" in server.out.text


async def test_second_signal_leaves_no_module_behind(tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    modules = [rogue_module(tmp_path, "good"), rogue_module(tmp_path, "bad", "deaf bomb")]
    wanted = with_free_port(config(modules, [thing("g", GOOD), thing("b", BAD)]))
    async with run_server(wanted, tmp_path, exits=None, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await wait_until(channel, ready("g", "b"))
        finally:
            channel.close()
        server.signal(signal.SIGTERM)
        await server.out.wait_for("stopping: SIGTERM")
        await pass_time(2 * SIGNAL_DEBOUNCE)
        server.signal(signal.SIGTERM)
        assert await server.exit_code(within=SOON) == 1
    await until(lambda: not find_marked(mark), within=SOON)


async def test_starting_children_under_load_leaves_stderr_clean(tmp_path: Path) -> None:
    """No process that was in their way is left when the server has ended."""
    modules = [rogue_module(tmp_path, "good")]
    modules += [rogue_module(tmp_path, f"m{number}", "exit(AddResource)") for number in range(10)]
    modules += [rogue_module(tmp_path, "many", "daemon bomb")]
    things = [thing(f"t{number}", f"acme:m{number}:thing") for number in range(10)]
    wanted = with_free_port(config(modules, [thing("g", GOOD), FAKE, *things]))
    mark = secrets.token_hex(8)
    async with run_server(wanted, tmp_path, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await wait_until(channel, ready("g", "builtin"))
            until_then = time.monotonic() + size(ci=2, full=20)
            await asyncio.gather(*(_call(channel, until_then) for _ in range(8)))
            starts = server.out.text.count("; restarting in")
        finally:
            channel.close()
    print(f"{starts} children were started under load; stderr: {server.err.text!r}")

    assert starts >= 10
    assert server.err.text == ""
    assert not find_marked(mark)


async def _call(channel: Channel, until_then: float) -> None:
    while time.monotonic() < until_then:
        for name in ("g", "builtin"):
            await GenericClient(name, channel).do_command({"a": 1}, timeout=DEADLINE)

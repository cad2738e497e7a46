"""A module that breaks, in each way there is: why is told, it comes back, and hurts nobody else."""

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
from tests.fault.modules import (
    DEADLINE,
    MARK,
    NO_PAUSE,
    READY,
    SHORT,
    SOON,
    Config,
    House,
    Size,
    bad_module,
    config,
    environment_of,
    housed,
    marked,
    module_in,
    own_size,
    ready,
    resource_in,
    rogue_module,
    thing,
    unhealthy,
    until,
    zombies,
)
from tests.modules import make
from tests.running import running, served_anywhere
from tests.sizes import FULL, size

from cogwork.core.backoff import Backoff
from cogwork.modules.context import Deadlines
from cogwork.modules.module import Module
from cogwork.resource import sdk
from cogwork.server.shutdown import SIGNAL_DEBOUNCE

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402

PAUSES = Backoff(0.5, 0.5)
"""Long enough to be seen."""
LITTLE = 1.0
"""Seconds within which what has nothing to do with a fault is done, on a computer that is busy."""

BAD = "acme:bad:thing"
GOOD = "acme:good:thing"
FAKE = {"name": "builtin", "api": "rdk:component:generic", "model": "fake"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(tmp_path, pauses=PAUSES) as house:
        yield house


@pytest.fixture
def unlogged() -> Iterator[None]:
    """pytest keeps what is logged, which would look like a leak."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def both(directory: Path, words: str, **env: str) -> Config:
    """A good module and a bad one, a resource of each, one that depends on the bad one's, and one
    that has nothing to do with modules."""
    modules = [rogue_module(directory, "bad", words, **env), rogue_module(directory, "good")]
    dependent = {**FAKE, "name": "dependent", "depends_on": ["b"]}
    return config(modules, [thing("b", BAD), thing("g", GOOD), dependent, FAKE])


async def others_work(house: House) -> float:
    """Milliseconds that the slower of two small calls takes."""
    slowest = 0.0
    for name in ("g", "builtin"):
        began = time.monotonic()
        assert await house.thing(name).do_command({"a": 1}, timeout=DEADLINE) == {"a": 1.0}
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < LITTLE
    return slowest * 1000


async def pid_of(house: House, name: str) -> int:
    pid = house.modules.by_name[name].pid
    assert pid is not None
    return pid


async def test_one_that_does_not_stay_is_told_to(house: House) -> None:
    done = {"name": "bad", "type": "local", "executable_path": "/bin/true"}
    house.apply(config([done], [FAKE]))
    await house.until(
        unhealthy("bad", "exited with code 0 before it was ready; a module must serve until")
    )
    await house.until(ready("builtin"), within=SOON)


async def test_one_that_exits_at_its_start_is_noticed_and_told_why(
    house: House, tmp_path: Path
) -> None:
    house.apply(both(tmp_path, "exit(start)"))

    seconds = await house.until(unhealthy("bad", "exited with code 5"))
    await house.until(ready("g", "builtin"), within=SOON)

    assert seconds < SOON
    status = await house.status()
    module = module_in(status, "bad")
    assert "(last line: RuntimeError: the device is not there)" in module.error
    assert module.error.endswith("\nTraceback of the rogue\nRuntimeError: the device is not there")
    assert "restarting in 0.5s" in module.error
    assert module.consecutive_failures >= 1
    for name in ("b", "dependent"):
        assert "RuntimeError: the device is not there" in resource_in(status, name).error
    print(f"exit at start: told {seconds * 1000:.0f} ms after the configuration")
    await others_work(house)


EXITS = {
    "exit(AddResource)": "exited with code 5",
    "crash(AddResource)": "was killed by SIGSEGV",
    "exit(ValidateConfig)": "exited with code 5",
}


@pytest.mark.parametrize("words", EXITS)
async def test_one_that_ends_while_a_resource_is_added_adds_it_in_its_next_life(
    house: House, tmp_path: Path, words: str
) -> None:
    house.apply(both(tmp_path, words, ONCE=str(tmp_path / "once")))

    seconds = await house.until(unhealthy("bad", EXITS[words]))
    await house.until(unhealthy("b", EXITS[words]), within=SOON)
    await house.until(unhealthy("dependent", EXITS[words]), within=SOON)
    await house.until(ready("g", "builtin"), within=SOON)
    await others_work(house)
    back = await house.until(ready())

    assert seconds < SOON
    print(f"{words}: told after {seconds * 1000:.0f} ms, all ready {back * 1000:.0f} ms later")
    assert await house.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}
    assert house.modules.by_name["bad"].starts == 2


async def test_one_that_ends_while_a_resource_is_changed_comes_back_with_the_change(
    house: House, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    wanted = both(
        tmp_path, "exit(ReconfigureResource)", NOTES=str(notes), ONCE=str(tmp_path / "once")
    )
    # What somebody holds is made anew, and not changed in place.
    del wanted["components"][2]
    house.apply(wanted)
    await house.until(ready())

    wanted["components"][0] = thing("b", BAD, colour="vermilion")
    house.apply(wanted)
    seconds = await house.until(unhealthy("b", "exited with code 5"))
    await others_work(house)
    back = await house.until(ready())

    assert seconds < SOON
    added = [line for line in notes.read_text().splitlines() if "AddResource" in line]
    assert len(added) == 2
    assert "vermilion" in added[1]
    print(
        f"exit in reconfigure: told after {seconds * 1000:.0f} ms, back {back * 1000:.0f} ms later"
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
async def test_one_that_is_killed_is_noticed_and_what_depends_on_it_is_repaired(
    house: House, tmp_path: Path, number: signal.Signals
) -> None:
    house.apply(both(tmp_path, ""))
    await house.until(ready())
    before = house.machine.nodes

    generations = {name.short: node.held.generation for name, node in before.items() if node.held}
    os.kill(await pid_of(house, "bad"), number)
    seconds = await house.until(unhealthy("b", f"was killed by {number.name}"))
    await house.until(unhealthy("dependent", number.name), within=SOON)
    with pytest.raises(GRPCError) as refused:
        await house.thing("b").do_command({"b": 2}, timeout=DEADLINE)
    await others_work(house)
    back = await house.until(ready())

    assert seconds < SOON
    assert refused.value.status is Status.UNAVAILABLE
    assert number.name in str(refused.value.message)
    after = {name.short: node.held.generation for name, node in before.items() if node.held}
    changed = {name for name in after if after[name] != generations[name]}
    assert changed == {"b", "dependent"}
    print(f"{number.name}: told after {seconds * 1000:.0f} ms, back {back * 1000:.0f} ms later")


async def test_a_call_under_way_ends_with_the_process_that_serves_it(
    house: House, tmp_path: Path
) -> None:
    house.apply(both(tmp_path, "hang(DoCommand)"))
    await house.until(ready())

    calls = [
        asyncio.ensure_future(house.thing("b").do_command({"b": 2}, timeout=DEADLINE))
        for _ in range(50)
    ]
    await others_work(house)
    began = time.monotonic()
    os.kill(await pid_of(house, "bad"), signal.SIGKILL)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    seconds = time.monotonic() - began

    assert seconds < SOON
    assert {each.status for each in answers if isinstance(each, GRPCError)} == {Status.UNAVAILABLE}
    print(f"50 calls under way ended {seconds * 1000:.0f} ms after their module was killed")


HANGS = {
    "hang(start)": ("was not ready within 1s", SHORT.start),
    "hang(Ready)": ("was not ready within 1s", SHORT.start),
    "block(Ready)": ("was not ready within 1s", SHORT.start),
    "hang(ValidateConfig)": ("did not reply to ValidateConfig within 0.5s", SHORT.validate),
    "hang(AddResource)": ("did not reply to AddResource within 0.5s", SHORT.add),
    "block(AddResource)": ("did not reply to AddResource within 0.5s", SHORT.add),
}


@pytest.mark.parametrize("words", HANGS)
async def test_one_that_hangs_is_given_up_and_delays_nobody(
    house: House, tmp_path: Path, words: str
) -> None:
    reason, limit = HANGS[words]
    began = time.monotonic()
    house.apply(both(tmp_path, words))
    await house.until(ready("g", "builtin"))
    others = time.monotonic() - began
    worst = await others_work(house)

    await house.until(unhealthy("b", reason))
    seconds = time.monotonic() - began

    assert others < limit
    assert seconds < limit + SOON
    await house.until(unhealthy("dependent", reason), within=SOON)
    await others_work(house)
    print(
        f"{words}: given up after {seconds:.2f} s (limit {limit:g} s); others ready after "
        f"{others * 1000:.0f} ms, a call of theirs {worst:.1f} ms"
    )


async def test_one_that_hangs_once_works_after_that(house: House, tmp_path: Path) -> None:
    house.apply(both(tmp_path, "hang(start)", ONCE=str(tmp_path / "once")))

    await house.until(unhealthy("bad", "was not ready within 1s"))
    await house.until(ready())

    assert (await house.module("bad")).error == ""


@pytest.mark.parametrize("words", ["hang(RemoveResource)", "block(RemoveResource)"])
async def test_one_that_hangs_in_removing_delays_no_change(
    house: House, tmp_path: Path, words: str
) -> None:
    wanted = both(tmp_path, words)
    house.apply(wanted)
    await house.until(ready())

    wanted["components"] = [thing("g", GOOD), thing("later", GOOD), FAKE]
    began = time.monotonic()
    outcome = house.apply(wanted)
    others = await house.until(ready("later"))
    await others_work(house)
    await asyncio.wait_for(outcome, DEADLINE)
    seconds = time.monotonic() - began

    assert others < SHORT.remove
    assert seconds < SHORT.remove + SOON
    assert "b" not in {name.short for name in house.machine.nodes}
    print(f"{words}: over after {seconds:.2f} s; another was there after {others * 1000:.0f} ms")


async def test_a_call_that_hangs_is_bounded_by_its_deadline_and_delays_nobody(
    house: House, tmp_path: Path
) -> None:
    house.apply(both(tmp_path, "hang(DoCommand)"))
    await house.until(ready())

    began = time.monotonic()
    calls = [
        asyncio.ensure_future(house.thing("b").do_command({"b": 2}, timeout=0.5)) for _ in range(50)
    ]
    worst = max([await others_work(house) for _ in range(20)])
    answers = await asyncio.gather(*calls, return_exceptions=True)
    seconds = time.monotonic() - began

    assert {each.status for each in answers if isinstance(each, GRPCError)} == {
        Status.DEADLINE_EXCEEDED
    }
    assert seconds < 0.5 + SOON
    assert (await house.module("bad")).error == ""
    print(f"50 calls that hang: over after {seconds:.2f} s; others' slowest {worst:.1f} ms")


async def test_one_that_is_not_ready_yet_is_asked_again(house: House, tmp_path: Path) -> None:
    house.apply(both(tmp_path, "unready(3)"))

    await house.until(ready("g", "builtin"), within=SOON)
    assert not ready("b")(await house.status())
    seconds = await house.until(ready())

    module = await house.module("bad")
    assert (module.error, module.consecutive_failures) == ("", 0)
    assert house.modules.by_name["bad"].starts == 1
    print(f"not ready three times: ready {seconds:.2f} s after the others")


async def test_one_that_is_stopped_does_not_answer_and_comes_back_as_it_was(
    house: House, tmp_path: Path
) -> None:
    house.apply(both(tmp_path, ""))
    await house.until(ready())
    pid = await pid_of(house, "bad")

    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(GRPCError) as refused:
        await house.thing("b").do_command({"b": 2}, timeout=0.3)
    bounded = time.monotonic() - began
    await house.until(unhealthy("bad", f"(process {pid}) runs but does not respond"))
    await house.until(unhealthy("b", "does not respond"))
    told = time.monotonic() - began
    await others_work(house)
    os.kill(pid, signal.SIGCONT)
    back = await house.until(ready())

    assert refused.value.status is Status.DEADLINE_EXCEEDED
    assert bounded < 0.3 + LITTLE
    assert told < 2 * SHORT.probe + SOON
    assert await house.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}
    assert await pid_of(house, "bad") == pid
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
async def test_one_written_with_the_sdk_fares_no_better(tmp_path: Path, mode: str) -> None:
    deadlines = Deadlines(start=4.0, add=0.5, remove=0.5, probe=0.5)
    what, _, how = mode.partition(" ")
    modules = [bad_module(tmp_path, "bad", what, HANG=how), rogue_module(tmp_path, "good")]
    async with housed(tmp_path, deadlines, PAUSES) as house:
        house.apply(config(modules, [thing("b", BAD), thing("g", GOOD), FAKE]))
        others = await house.until(ready("g", "builtin"))
        if mode == "exit-in-call":
            await house.until(ready("b"))
            with pytest.raises(GRPCError) as refused:
                await house.thing("b").do_command({}, timeout=DEADLINE)
            assert refused.value.status is Status.UNAVAILABLE
        if mode == "exit-in-reconfigure":
            await house.until(ready("b"))
            house.apply(config(modules, [thing("b", BAD, a=1), thing("g", GOOD), FAKE]))
        seconds = await house.until(unhealthy("b", SDK_ROWS[mode]))
        worst = await others_work(house)
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
async def test_nobody_outlives_their_module(
    house: House, tmp_path: Path, end: str, words: str
) -> None:
    wanted = both(tmp_path, words, **({"ONCE": str(tmp_path / "once")} if end == "killed" else {}))
    house.apply(wanted)
    await house.until(ready())
    pid = await pid_of(house, "bad")
    crowd = 2 + 32 * ("bomb" in words) + ("daemon" in words)
    async with asyncio.timeout(DEADLINE):
        while len(marked(house.mark)) < crowd:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    worst = await others_work(house)

    began = time.monotonic()
    if end == "killed":
        os.kill(pid, signal.SIGKILL)
        seconds = await house.until(unhealthy("b", "was killed by SIGKILL"))
        assert seconds < SOON
        await house.until(ready())
        left = {pid_of_good(house), await pid_of(house, "bad")}
    else:
        wanted["modules"] = wanted["modules"][1:]
        house.apply(wanted)
        left = {pid_of_good(house)}
    async with asyncio.timeout(DEADLINE):
        while set(marked(house.mark)) != left or zombies(os.getpid()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    print(
        f"{words} {end}: {crowd - 1} processes gone after {time.monotonic() - began:.2f} s; "
        f"others' slowest call {worst:.1f} ms"
    )


def pid_of_good(house: House) -> int:
    pid = house.modules.by_name["good"].pid
    assert pid is not None
    return pid


@pytest.mark.timeout(120)
async def test_however_much_one_writes_to_stderr_little_is_kept(
    house: House, tmp_path: Path, unlogged: None
) -> None:
    much = size(ci=30_000_000, full=1 << 30)
    house.apply(both(tmp_path, ""))
    await house.until(ready())
    before = own_size()

    house.apply(both(tmp_path, f"flood({much})", ROUND="2"))
    slowest = 0.0
    began = time.monotonic()
    await house.until(ready())
    process = psutil.Process(await pid_of(house, "bad"))
    async with asyncio.timeout(100):
        while process.num_threads() > 1:
            slowest = max(slowest, await others_work(house))
    seconds = time.monotonic() - began
    after = own_size()

    assert after.mib - before.mib < 20
    print(
        f"{much / 1e6:.0f} MB of stderr in {seconds:.1f} s: {before} -> {after}; "
        f"others' slowest call {slowest:.1f} ms"
    )


async def test_of_a_model_that_several_bring_it_is_told_whose_counts(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = {"first": GOOD, "second": GOOD, "third": "rdk:builtin:fake"}
    notes = {name: tmp_path / f"{name}.notes" for name in names}
    modules = [
        rogue_module(tmp_path, name, model=model, NOTES=str(notes[name]))
        for name, model in names.items()
    ]
    house.apply(config(modules, [thing("g", GOOD), FAKE]))
    await house.until(lambda status: [each.state for each in status.modules] == [READY] * 3)
    await house.until(ready("g", "builtin"))

    said = [record.getMessage() for record in caplog.records if "model " in record.getMessage()]
    assert sorted(words for words in said if "provided by" in words or "not used" in words) == [
        f"model {GOOD} is provided by modules first and second; using first, which is first in the "
        "configuration",
        "model rdk:builtin:fake of module third is not used: the server has one of that name in "
        "its own process; uninstall its package, or rename a model",
    ]
    assert "AddResource" in notes["first"].read_text()
    assert "AddResource" not in notes["third"].read_text()


async def test_the_pause_grows_with_each_failure_and_is_told(tmp_path: Path) -> None:
    pauses = Backoff(0.05, 0.4)
    async with housed(tmp_path, pauses=pauses) as house:
        house.apply(both(tmp_path, "exit(start)"))
        await house.until(lambda status: module_in(status, "bad").consecutive_failures >= 6)
        failed = [each for each in house.story if each["state"] == "failed"]

        await house.until(unhealthy("bad", "restarting in 0.4s"))
        assert [each["failures"] for each in failed] == list(range(1, len(failed) + 1))
        for each, wanted in zip(failed, (0.05, 0.1, 0.2, 0.4, 0.4, 0.4), strict=False):
            assert 0.74 * wanted <= each["retry_after"] <= 1.26 * wanted
        print("pauses:", [each["retry_after"] for each in failed])


@pytest.mark.timeout(900)
async def test_a_thousand_crashes_leave_nothing(tmp_path: Path, unlogged: None) -> None:
    times = size(ci=25, full=1000)
    async with housed(tmp_path, pauses=NO_PAUSE) as house:
        stub = rogue_module(tmp_path, "bad", "exit(AddResource)")
        good = rogue_module(tmp_path, "good")
        house.apply(config([stub, good], [thing("b", BAD), thing("g", GOOD), FAKE]))
        bad = house.modules.by_name["bad"]
        before = await _size_after(bad, times // 5)
        began = time.monotonic()
        after = await _size_after(bad, times // 5 + times)
        seconds = time.monotonic() - began
        print(f"{times} crash-restarts of a stub in {seconds:.0f} s: {before} -> {after}")

        assert after.is_flat_since(before)
        assert not zombies(os.getpid())
        await others_work(house)
        assert house.modules.by_name["good"].starts == 1


@pytest.mark.timeout(900)
async def test_crashes_of_one_written_with_the_sdk_leave_nothing(
    tmp_path: Path, unlogged: None
) -> None:
    times = size(ci=3, full=50)
    async with housed(tmp_path, Deadlines(), NO_PAUSE) as house:
        house.apply(config([bad_module(tmp_path, "bad", "good")], [thing("b", BAD)]))
        await _crashed(house, max(2, times // 10))
        before = own_size()
        began = time.monotonic()
        await _crashed(house, times)
        seconds = time.monotonic() - began
        after = own_size()
        print(f"{times} crash-restarts of an SDK module in {seconds:.0f} s: {before} -> {after}")

        assert after.is_flat_since(before)
        assert await house.thing("b").do_command({"b": 2}, timeout=DEADLINE) == {"b": 2.0}


async def _size_after(module: Module, starts: int) -> Size:
    async with asyncio.timeout(800):
        while module.starts < starts:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return own_size()


async def _crashed(house: House, times: int) -> None:
    module = house.modules.by_name["bad"]
    for _ in range(times):
        await house.until(ready())
        starts = module.starts
        os.kill(await pid_of(house, "bad"), signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            while module.starts == starts:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    await house.until(ready())


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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS if FULL else KINDS[:2])
async def test_a_good_one_is_ready_in_the_time_that_it_takes_alone(
    tmp_path: Path, kind: str
) -> None:
    alone, beside = [], []
    for _ in range(size(ci=1, full=5)):
        alone.append(await _seconds_to_ready(tmp_path, None))
        beside.append(await _seconds_to_ready(tmp_path, kind))
    ratio = statistics.median(beside) / statistics.median(alone)
    print(
        f"{kind:18} good one ready after {statistics.median(beside):.3f} s, alone after "
        f"{statistics.median(alone):.3f} s: {ratio:.2f}"
    )
    assert ratio < (1.5 if FULL else 3)


async def _seconds_to_ready(directory: Path, kind: str | None) -> float:
    """Of five resources of a module that is written with the SDK."""
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
    async with housed(directory, Deadlines()) as house:
        began = time.monotonic()
        house.apply(config([*bad, good], [*sensors, *([thing("b", BAD)] if bad else [])]))
        await house.until(ready(*(each["name"] for each in sensors)))
        return time.monotonic() - began


@pytest.mark.timeout(120)
@pytest.mark.parametrize("hanging", [True, False])
async def test_shutdown_of_many_modules_ends_in_time_and_in_order(
    tmp_path: Path, hanging: bool
) -> None:
    """Each thing depends on the one before it, so that those that hang are waited for first."""
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
    wanted = served_anywhere(config(modules, things))
    async with running(wanted, tmp_path, exits=None, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await until(channel, ready(*(each["name"] for each in things)))
        finally:
            channel.close()
        if hanging:
            (stopped,) = [pid for pid in marked(mark) if b"acme:m19:" in environment_of(pid)]
            os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        code = await server.exit_code(within=40)
        seconds = time.monotonic() - began
    print(f"20 modules, {'3 hang' if hanging else 'none hangs'}: exit code {code}, {seconds:.1f} s")

    assert not marked(mark)
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


async def test_whoever_insists_on_the_end_leaves_no_module_behind(tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    modules = [rogue_module(tmp_path, "good"), rogue_module(tmp_path, "bad", "deaf bomb")]
    wanted = served_anywhere(config(modules, [thing("g", GOOD), thing("b", BAD)]))
    async with running(wanted, tmp_path, exits=None, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await until(channel, ready("g", "b"))
        finally:
            channel.close()
        server.signal(signal.SIGTERM)
        await server.out.says("stopping: SIGTERM")
        await asyncio.sleep(2 * SIGNAL_DEBOUNCE)
        server.signal(signal.SIGTERM)
        assert await server.exit_code(within=SOON) == 1
    async with asyncio.timeout(SOON):
        while marked(mark):  # noqa: ASYNC110 - nobody tells when they are gone
            await asyncio.sleep(0.01)


@pytest.mark.timeout(120)
async def test_starting_children_under_load_leaves_stderr_clean(tmp_path: Path) -> None:
    """And nobody who was in their way is left when the server is gone."""
    modules = [rogue_module(tmp_path, "good")]
    modules += [rogue_module(tmp_path, f"m{number}", "exit(AddResource)") for number in range(10)]
    modules += [rogue_module(tmp_path, "many", "daemon bomb")]
    things = [thing(f"t{number}", f"acme:m{number}:thing") for number in range(10)]
    wanted = served_anywhere(config(modules, [thing("g", GOOD), FAKE, *things]))
    mark = secrets.token_hex(8)
    async with running(wanted, tmp_path, environment={MARK: mark}) as server:
        channel = Channel("127.0.0.1", server.port)
        try:
            await until(channel, ready("g", "builtin"))
            until_then = time.monotonic() + size(ci=2, full=20)
            await asyncio.gather(*(_call(channel, until_then) for _ in range(8)))
            starts = server.out.text.count("; restarting in")
        finally:
            channel.close()
    print(f"{starts} children were started under load; stderr: {server.err.text!r}")

    assert starts >= 10
    assert server.err.text == ""
    assert not marked(mark)


async def _call(channel: Channel, until_then: float) -> None:
    while time.monotonic() < until_then:
        for name in ("g", "builtin"):
            await GenericClient(name, channel).do_command({"a": 1}, timeout=DEADLINE)

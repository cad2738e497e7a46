import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support import leaks
from tests.support.leaks import Held
from tests.support.paths import REPOSITORY
from tests.support.waiting import run_others

# The guard of this very suite, with less patience so that its verdicts come quickly.
CONFTEST = """
from tests.support import leaks
from tests.conftest import *

leaks.PATIENCE = 0.2
"""

CLEAN = """
import asyncio, os, socket, subprocess, sys, tempfile, threading, time

import pytest
import pytest_asyncio
from hypothesis import given, strategies

def test_nothing():
    pass

def test_everything_is_ended(tmp_path, capfd):
    (tmp_path / "file").touch()
    with tempfile.TemporaryDirectory(), socket.socket(), open(os.devnull):
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def test_a_thread_that_is_just_finishing():
    threading.Thread(target=time.sleep, args=[0.05]).start()

@pytest.fixture
async def server():
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    serving = asyncio.create_task(server.serve_forever())
    yield server
    serving.cancel()
    await server.wait_closed()

async def test_a_fixture_ends_its_task(server):
    await asyncio.to_thread(time.sleep, 0)

async def test_a_child_of_the_loop():
    child = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "")
    await child.wait()

async def test_a_task_that_is_just_finishing():
    asyncio.create_task(asyncio.sleep(0.05))

@given(strategies.integers())
async def test_examples_on_a_loop(number):
    await asyncio.create_task(asyncio.sleep(0))

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared():
    task = asyncio.create_task(asyncio.Event().wait())
    yield
    task.cancel()

@pytest.mark.asyncio(loop_scope="module")
async def test_a_loop_shared_with_a_fixture(shared):
    await asyncio.to_thread(time.sleep, 0)

def test_what_was_there_before_is_not_blamed_on_this_test():
    pass
"""

LEAKING = """
import asyncio, os, socket, subprocess, sys, tempfile, threading
from pathlib import Path

held = []

def test_before():
    pass

async def test_task():
    held.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))

def test_thread():
    stop = threading.Event()
    held.append(stop)
    threading.Thread(target=stop.wait, args=[5], name="forgotten", daemon=True).start()

def test_child():
    held.append(subprocess.Popen(["sleep", "5"]))

def test_zombie():
    held.append(subprocess.Popen(["true"]))

def test_socket():
    held.append(socket.socket())

async def test_socket_on_a_loop():
    held.append(socket.socket())

def test_descriptor():
    held.append(os.open(os.devnull, os.O_RDONLY))

def test_temporary_file():
    Path(tempfile.gettempdir(), "forgotten.txt").touch()

def test_temporary_directory():
    tempfile.mkdtemp(prefix="forgotten")

def test_several():
    held.append(socket.socket())
    tempfile.mkdtemp(prefix="forgotten")

def test_after():
    pass

def teardown_module():
    for thing in held:
        if isinstance(thing, subprocess.Popen):
            thing.kill()
            thing.wait()
        elif isinstance(thing, socket.socket):
            thing.close()
        elif isinstance(thing, threading.Event):
            thing.set()
"""

MESSAGES = {
    "test_task": 'task "forgotten" (Event.wait)',
    "test_thread": 'thread "forgotten"',
    "test_child": '("sleep")',
    "test_zombie": '("true", a zombie)',
    "test_socket": "(socket:[",
    "test_socket_on_a_loop": "(socket:[",
    "test_descriptor": "(/dev/null)",
    "test_temporary_file": "/forgotten.txt",
    "test_temporary_directory": "/forgotten",
    "test_several": "(socket:[",
}

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def errors_of(directory: Path, tests: str) -> Mapping[str, str | None]:
    """Each test's error, or None if it passed, from a pytest of its own."""
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_it.py").write_text(tests)
    report = directory / "report.xml"
    options = {"--rootdir": directory, "--basetemp": directory / "tmp", "--junit-xml": report}
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("-c", REPOSITORY / "pyproject.toml", "test_it.py"),
            *(f"{option}={path}" for option, path in options.items()),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.DEVNULL,
        timeout=50,
        check=False,
    )
    return {
        case.attrib["name"]: _error(case) for case in ElementTree.parse(report).iter("testcase")
    }


def _error(case: ElementTree.Element) -> str | None:
    assert case.find("failure") is None
    errors = [error.attrib["message"] for error in case.findall("error")]
    return "; ".join(errors) or None


def test_clean_tests_pass(tmp_path: Path) -> None:
    errors = errors_of(tmp_path, CLEAN)
    assert len(errors) == CLEAN.count("def test_")
    assert {name: error for name, error in errors.items() if error} == {}


@linux_only
def test_each_leak_fails_the_test_that_made_it(tmp_path: Path) -> None:
    errors = errors_of(tmp_path, LEAKING)
    assert {name for name, error in errors.items() if error} == MESSAGES.keys()
    assert {"test_before", "test_after"} < errors.keys()
    for name, message in MESSAGES.items():
        error = errors[name] or ""
        assert "the test left behind: " in error
        assert message in error, name
        assert error.count(", ") == error.count(", a zombie") + (name == "test_several"), error


def test_everything_is_named_in_one_sentence() -> None:
    left = {Held(2, 'thread "b"'), Held(1, "socket 7 (socket:[1])")}
    assert leaks.sentence(left) == (
        'the test left behind: socket 7 (socket:[1]), thread "b"; end or close what a test starts'
    )


def test_a_thing_stays_the_same_when_its_label_changes() -> None:
    assert {Held(("child", 7), "running")} == {Held(("child", 7), "a zombie")}


def test_a_program_may_have_any_name() -> None:
    assert leaks._parse_stat("7 (a) (b c) S 5 7 7 0 -1\n") == (7, "a) (b c", "S", 5)


@linux_only
def test_children_are_seen() -> None:
    before = leaks.snapshot()
    with subprocess.Popen(["sleep", "5"]) as child:
        new = leaks.snapshot() - before
        child.kill()
    assert Held(("child", child.pid), "") in new


async def test_the_task_that_looks_is_not_a_leak() -> None:
    assert await leaks.leaked_tasks() == frozenset()
    task = asyncio.create_task(run_others())
    assert await leaks.leaked_tasks() == frozenset()
    assert task.done()

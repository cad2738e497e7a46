"""Fixtures for every test: leak guards, a private temporary directory and test sizes."""

import contextlib
import errno
import gc
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from pytest_asyncio import is_async_test
from tests.support import leaks
from tests.support.memory_directory import find_memory_directory
from tests.support.network.namespaces import CAN_MAKE_NETWORKS, own_network
from tests.support.sizes import SIZE
from tests.support.waiting import block_until

# Set this before onnxruntime is imported: tests must not send telemetry.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Set this before grpc is imported: otherwise it opens other descriptors whenever a test starts a
# process, which look like leaks.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Background jobs of a shell ignore SIGINT, and so would every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "full",
    settings.get_profile("ci"),
    derandomize=False,
    max_examples=10 * settings.get_profile("ci").max_examples,
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.load_profile(SIZE)


def pytest_configure() -> None:
    """Keep the files of tests in memory, but for those of full size."""
    if SIZE != "full" and (directory := find_memory_directory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(directory))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """At quick size, run the first case of each test."""
    if SIZE == "quick":
        functions = set[str]()
        chosen: list[pytest.Item] = []
        others: list[pytest.Item] = []
        for item in items:
            function = item.nodeid.partition("[")[0]
            is_quick = function not in functions and not item.get_closest_marker("long")
            functions.add(function)
            (chosen if is_quick else others).append(item)
        items[:] = chosen
        config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session", autouse=True)
def private_temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a private directory, so that all files in it are ours."""
    directory = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", directory)
        patch.setitem(os.environ, "TMPDIR", directory)
        yield


@pytest.fixture(scope="module", autouse=True)
def freeze_garbage_collector() -> None:
    """What is there for good, such as engines and what pytest remembers, takes a full collection
    of garbage up to half a second: long enough to fail a test that watches the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def default_port() -> Iterator[int]:
    """Yield the port of a machine without a configured address, in a network of the test's own.

    Without the right to make networks, one test at a time uses it, in all processes that run tests
    on this computer. So a test that uses it is marked `timeout(..., func_only=True)`.
    """
    with own_network() if CAN_MAKE_NETWORKS else _turn("default port"):
        yield 8080


@contextlib.contextmanager
def _turn(name: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as mine:

        def is_ours() -> bool:
            try:
                mine.bind(f"\0cogwork tests: {name}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                return False
            return True

        block_until(is_ours, within=600, every=0.05)
        yield


@pytest.fixture(autouse=True)
def leak_guard(private_temporary_directory: None, request: pytest.FixtureRequest) -> Iterator[None]:
    before = leaks.snapshot()
    yield
    if left := leaks.leaked_since(before, loop_goes_on=not _has_own_loop(request.node)):
        pytest.fail(leaks.sentence(left), pytrace=False)


@pytest.fixture(autouse=True)
def task_guard(leak_guard: None, request: pytest.FixtureRequest) -> None:
    """Run before the test's other fixtures, so that it checks after they are torn down."""
    if is_async_test(request.node) and _has_own_loop(request.node):
        request.getfixturevalue("task_guard_on_loop")


def _has_own_loop(test: pytest.Item) -> bool:
    # On a loop shared with other tests, tasks may live as long as the loop's fixtures.
    marker = test.get_closest_marker("asyncio")
    return marker is None or marker.kwargs.get("loop_scope", "function") == "function"


@pytest.fixture
async def task_guard_on_loop() -> AsyncIterator[None]:
    yield
    if left := await leaks.leaked_tasks():
        pytest.fail(leaks.sentence(left), pytrace=False)

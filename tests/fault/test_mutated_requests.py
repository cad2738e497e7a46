"""Invalid requests to the real server: it answers each of them, and all other clients."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from grpclib.const import Status
from tests.fault import requests
from tests.fault.requests import Method
from tests.support.machine.watched import ATTEMPTS, LONGEST_TURN, Phase, WatchedServer, run_watched
from tests.support.network.http2_client import Answer, Client, Gone, Header, connected
from tests.support.network.http2_frames import message
from tests.support.sizes import FULL, limit, size

from cogwork.resource.sdk import clean_import as sdk

REQUESTS = size(ci=600, full=10_000)
LARGEST = 1 << 25
AT_ONCE = 16
DEADLINE = 60.0
"""Seconds that the answer to any request may take."""
MOST_GROWTH = 50.0
"""MiB that the server may have grown when all is over."""

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402

ODD_PATHS: tuple[str | bytes, ...] = (
    "",
    "/",
    "//",
    "x",
    "/x",
    "/viam.robot.v1.RobotService",
    "/viam.robot.v1.RobotService/",
    "/viam.robot.v1.RobotService/Nope",
    "//viam.robot.v1.RobotService/ResourceNames",
    "/viam.robot.v1.RobotService/ResourceNames/",
    "/viam.robot.v1.RobotService/ResourceNames?a=b",
    "/VIAM.ROBOT.V1.RobotService/ResourceNames",
    "/acme.module.v1.Widget/Turn",
    "/viam.component.arm.v1.ArmService/../../robot",
    "/%2e%2e/%00",
    "/ü/ß",
    "/" + "x" * 4000 + "/y",
    "*",
    "http://localhost/viam.robot.v1.RobotService/ResourceNames",
)
ODD_HEADERS: tuple[Header, ...] = (
    ("opid", ""),
    ("opid", "x" * 3000),
    (b"opid", b"\xff\xfe"),
    ("opid-bin", "!!! no base64"),
    (b"x-bin", b"\xff" * 50),
    ("grpc-timeout", "soon"),
    ("grpc-timeout", "0n"),
    ("grpc-timeout", "-1S"),
    ("grpc-timeout", "99999999H"),
    ("grpc-encoding", "gzip"),
    ("grpc-encoding", "nobody-knows"),
    ("grpc-accept-encoding", "x" * 500),
    ("authorization", "Bearer " + "x" * 2000),
    ("cookie", "a=b; " * 200),
    ("x" * 500, "y"),
    ("grpc-previous-rpc-attempts", "many"),
    ("grpc-internal-encoding-request", "gzip"),
    ("content-length", "7"),
    ("user-agent", ""),
    ("viam-sid", "nobody's session"),
    ("dtname", "../../etc/passwd"),
)
ODD_INSTEAD: tuple[tuple[Header, ...], ...] = (
    (),
    (("content-type", "application/json"), ("te", "trailers")),
    (("content-type", "application/grpc+json"), ("te", "trailers")),
    (("content-type", "application/grpc-web"),),
    (("te", "gzip"), ("content-type", "application/grpc")),
)
SHORT: Header = ("grpc-timeout", "300m")
"""For calls that may last as long as a client listens or a motor turns."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(watched: WatchedServer, idle: Phase) -> WatchedServer:
    """A server that is calm, whatever was done to it before."""
    await watched.wait_until_calm()
    return watched


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle(watched: WatchedServer) -> Phase:
    """What the bystander sees of a server that nobody attacks."""
    return await watched.measure_idle(0.5)


@dataclass(frozen=True)
class Request:
    path: str | bytes
    body: bytes
    besides: tuple[Header, ...] = (SHORT,)
    instead: tuple[Header, ...] | None = None
    framed: bool = True

    @property
    def is_proper(self) -> bool:
        """Return whether HTTP/2 and gRPC accept it, whatever its body."""
        return self.besides == (SHORT,) and self.instead is None and self.framed


class Attack:
    def __init__(self, port: int) -> None:
        self._port = port
        self.seen: Counter[str] = Counter()
        """How often calls ended in which way."""
        self.slowest = 0.0

    async def send(self, requests: Iterable[Request], at_once: int = AT_ONCE) -> None:
        queue = iter(requests)
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._send(queue))

    async def _send(self, queue: Iterator[Request]) -> None:
        async with connected(self._port) as proper:
            for request in queue:
                if request.is_proper:
                    await self._call(proper, request)
                else:
                    # It may close the connection.
                    async with connected(self._port) as other:
                        await self._call(other, request)

    async def _call(self, client: Client, request: Request) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(DEADLINE):
                answer = await client.call(
                    request.path,
                    request.body,
                    besides=request.besides,
                    instead=request.instead,
                    framed=request.framed,
                )
        except TimeoutError:
            raise AssertionError(f"no answer within {DEADLINE:g} s: {describe(request)}") from None
        except Gone as gone:
            if request.is_proper:
                raise AssertionError(f"{gone}: {describe(request)}") from None
            self.seen["connection closed"] += 1
            return
        self.slowest = max(self.slowest, time.monotonic() - began)
        self._check(request, answer)

    def _check(self, request: Request, answer: Answer) -> None:
        for clue in ("Traceback", 'File "', ".py"):
            assert clue not in answer.words, f"{answer.words}: {describe(request)}"
            assert clue.encode() not in answer.body, f"{answer.body!r}: {describe(request)}"
        if answer.status is not None:
            self.seen[Status(answer.status).name] += 1
            assert answer.status == 0 or answer.words, f"no words: {answer}: {describe(request)}"
        elif answer.reset is not None:
            # The server ends expired and invalid calls like this.
            self.seen["reset"] += 1
        else:
            self.seen[f"HTTP {answer.http}"] += 1
            assert not request.is_proper, f"no status: {answer}: {describe(request)}"


def describe(request: Request) -> str:
    return f"{request.path!r} {request.besides} {request.instead} {request.body[:200].hex()}"


def random_request(methods: list[Method], dice: random.Random) -> Request:
    method = dice.choice(methods)
    body = requests.valid_request(method, dice)
    match dice.choices(("mutated", "valid", "path", "headers", "framing"), (70, 10, 5, 10, 5))[0]:
        case "mutated":
            return Request(method.path, requests.mutate(body, dice))
        case "valid":
            return Request(method.path, body)
        case "path":
            return Request(dice.choice(ODD_PATHS), body)
        case "headers" if dice.random() < 0.8:
            odd = tuple(dice.sample(ODD_HEADERS, dice.randint(1, 3)))
            return Request(method.path, body, besides=(*odd, SHORT))
        case "headers":
            return Request(method.path, body, instead=dice.choice(ODD_INSTEAD))
        case _:
            return Request(method.path, requests.mutate(message(body), dice), framed=False)


def check_phase(
    phase: Phase,
    idle: Phase,
    longest_turn: float = LONGEST_TURN,
    most_growth: float = MOST_GROWTH,
) -> None:
    assert phase.busy < longest_turn, f"a turn of the loop took {phase.busy:.0f} ms"
    assert phase.growth < most_growth, f"it grew by {phase.growth:.0f} MiB"
    assert phase.bystander.failures == []
    assert phase.bystander.calls > 10
    print(f"  beyond idle: p99 {phase.bystander.p99 - idle.bystander.p50:.1f} ms")


def check_log(server: WatchedServer) -> None:
    """Errors of drivers are in the log; errors of the server must not occur."""
    for complaint in ("never retrieved", "Exception in callback", "Fatal error", "never awaited"):
        assert complaint not in server.server.output, server.server.output[-5000:]


@pytest.mark.timeout(size(ci=240, full=900))
@pytest.mark.asyncio(loop_scope="module")
async def test_mutated_requests_are_answered(server: WatchedServer, idle: Phase) -> None:
    methods = requests.public_methods()
    dice = random.Random(7)
    attack = Attack(server.server.port)
    # Call each method once: imports at the first call are covered by another test.
    await attack.send(Request(method.path, b"") for method in methods)
    attack.seen.clear()

    async def mutate() -> None:
        attack.seen.clear()
        began = time.monotonic()
        await attack.send(random_request(methods, dice) for _ in range(REQUESTS))
        rate = REQUESTS / (time.monotonic() - began)
        await server.wait_until_calm()
        print(f"  {len(methods)} methods, {rate:.0f} requests/s, slowest {attack.slowest:.2f} s")

    phase = await server.attack(f"{REQUESTS} mutated requests", mutate)
    print(f"  {dict(attack.seen.most_common())}")
    check_phase(phase, idle)
    check_log(server)
    assert attack.seen.total() == REQUESTS
    assert attack.seen["INVALID_ARGUMENT"] > REQUESTS / 20
    assert attack.seen["OK"] > REQUESTS / 100


NOISE = {
    "noise": lambda: random.Random(8).randbytes(LARGEST),
    "small fields": lambda: b"\x10\x00" * (LARGEST // 2),
    "small texts": lambda: b"\x7a\x00" * (LARGEST // 2),
    "names": lambda: b"\x0a\x01s" * (LARGEST // 3),
}
LONGEST_READING = 1500.0
"""Milliseconds for the others: a possible message is parsed to its end without interruption."""


@pytest.mark.timeout(size(ci=240, full=1800))
@pytest.mark.parametrize("kind", NOISE if FULL else ["noise", "small fields"])
@pytest.mark.asyncio(loop_scope="module")
async def test_largest_body_of_nonsense_is_answered(
    server: WatchedServer, idle: Phase, kind: str
) -> None:
    """Send it to every method that takes images or other bytes, whether or not it is served."""
    methods = [each for each in requests.public_methods() if each.takes_bytes]
    assert {"GetDetections", "Infer"} <= {method.path.rpartition("/")[2] for method in methods}
    if not FULL:
        methods = random.Random(9).sample(methods, 6)
    body = NOISE[kind]()
    attack = Attack(server.server.port)
    await attack.send(Request(method.path, b"") for method in methods)
    attack.seen.clear()
    longest_turn = LONGEST_TURN if kind == "noise" else LONGEST_READING
    long: Header = ("grpc-timeout", "10S")

    async def send() -> None:
        requests = (Request(each.path, body, besides=(long,)) for each in methods)
        await attack.send(requests, at_once=1)
        await server.wait_until_calm()

    phase = await server.attack(
        f"{len(methods)} × 32 MiB of {kind}", send, longest_turn=longest_turn
    )
    print(f"  slowest {attack.slowest:.2f} s, {dict(attack.seen.most_common())}")
    # The last one may not be freed entirely, and gRPC keeps buffers for reuse.
    check_phase(phase, idle, longest_turn, most_growth=100)
    check_log(server)


@pytest.mark.asyncio(loop_scope="module")
async def test_command_of_25000_values_is_answered(server: WatchedServer, idle: Phase) -> None:
    """It takes 400 kB on the wire: the points of a few outlines."""
    request = DoCommandRequest(name="g")
    request.command.get_or_create_list("points").extend([1.0] * 25_000)

    async def call() -> None:
        async with connected(server.server.port) as client:
            path = "/viam.component.generic.v1.GenericService/DoCommand"
            answer = await asyncio.wait_for(client.call(path, request.SerializeToString()), 30)
        assert answer.status == 0
        await server.wait_until_calm()

    # They are parsed in a thread, which shares the interpreter with the loop.
    highest_p99 = limit(2 * LONGEST_TURN)
    phase = await server.attack("25,000 values", call, highest_p99=highest_p99)
    check_phase(phase, idle)
    assert phase.bystander.p99 < highest_p99


@pytest.mark.timeout(size(ci=240, full=300))
@pytest.mark.asyncio(loop_scope="module")
async def test_paths_that_are_not_text_end_only_their_connection(
    server: WatchedServer, idle: Phase
) -> None:
    """By itself, grpc.aio ends its main loop over one, and all calls with it."""

    async def call() -> None:
        began = time.monotonic()
        sent = 0
        # A fast computer finishes these before the bystander has made enough calls.
        while sent < size(ci=100, full=2000) or time.monotonic() - began < 1:
            async with connected(server.server.port) as client:
                with pytest.raises(Gone):
                    await asyncio.wait_for(client.call(b"/\xff\xfe/\x80", b""), DEADLINE)
            sent += 1

    phase = await server.attack("paths that are not text", call)
    check_phase(phase, idle)
    assert phase.bystander.failed == 0
    assert phase.growth < MOST_GROWTH
    assert "gRPC server stopped" not in server.server.output


@pytest.mark.timeout(size(ci=240, full=300))
async def test_first_call_of_every_service_does_not_block_the_loop(tmp_path: Path) -> None:
    """The modules of a service are imported at its first call."""
    methods = {method.path.split("/")[1]: method for method in requests.public_methods()}
    for attempt in range(ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        async with run_watched(directory) as server:
            idle = await server.measure_idle(0.5)
            await server.begin()
            attack = Attack(server.server.port)
            await attack.send((Request(each.path, b"") for each in methods.values()), at_once=1)
            phase = await server.end(f"first calls of {len(methods)} services")
        if phase.busy < LONGEST_TURN:
            break
    check_phase(phase, idle)

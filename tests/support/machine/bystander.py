r"""A client of a machine that another client mistreats: it asks for the resources every 10 ms.

Run as ``bystander.py <port> [<token>]``. Each line on its standard input ends a phase: it then
prints a report of that phase as JSON.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field

from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.robot.v1.robot_grpc import RobotServiceStub  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest  # noqa: E402

EVERY = 0.01
DEADLINE = 5.0
MOST = 200
"""Calls under way at once."""


@dataclass
class Report:
    """Times in milliseconds, of calls that were answered."""

    calls: int
    failed: int
    unanswered: int
    """Of those that failed: calls without an answer in time."""
    failures: list[str]
    """How they failed, each once."""
    p50: float
    p99: float
    longest: float
    own: float
    """How late this client itself was, at worst: no fault of the server."""


@dataclass
class Phase:
    took: list[float] = field(default_factory=list)
    unanswered: int = 0
    failures: list[str] = field(default_factory=list)
    own: float = 0.0

    def report(self) -> Report:
        took = sorted(self.took) or [0.0]

        def percentile(share: float) -> float:
            return round(took[min(len(took) - 1, int(share * len(took)))] * 1000, 1)

        return Report(
            len(self.took) + len(self.failures),
            len(self.failures),
            self.unanswered,
            sorted(set(self.failures)),
            percentile(0.5),
            percentile(0.99),
            percentile(1),
            round(self.own * 1000, 1),
        )


class Bystander:
    def __init__(self, port: int, token: str = "") -> None:
        self.phase = Phase()
        self._metadata = {"authorization": f"Bearer {token}"} if token else None
        self._channel = Channel("127.0.0.1", port)
        self._stub = RobotServiceStub(self._channel)
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        due = time.monotonic()
        while True:
            due += EVERY
            await asyncio.sleep(max(0, due - time.monotonic()))
            self.phase.own = max(self.phase.own, time.monotonic() - due)
            if len(self._calls) < MOST:
                call = asyncio.ensure_future(self._call(self.phase))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)

    def close(self) -> None:
        self._channel.close()

    async def _call(self, phase: Phase) -> None:
        began = time.monotonic()
        try:
            reply = await self._stub.ResourceNames(
                ResourceNamesRequest(), timeout=DEADLINE, metadata=self._metadata
            )
            assert reply.resources
        except Exception as error:
            phase.failures.append(repr(error))
            phase.unanswered += is_timeout(error)
        else:
            phase.took.append(time.monotonic() - began)


def is_timeout(error: Exception) -> bool:
    if isinstance(error, GRPCError):
        return error.status is Status.DEADLINE_EXCEEDED
    return isinstance(error, TimeoutError)


async def main(port: int, token: str = "") -> None:
    bystander = Bystander(port, token)
    running = asyncio.ensure_future(bystander.run())
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.readline():
        ended, bystander.phase = bystander.phase, Phase()
        print(json.dumps(asdict(ended.report())), flush=True)
    running.cancel()
    bystander.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))

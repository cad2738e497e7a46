"""Two computers whose network can be slow, lose and reorder packets, or carry nothing.

The kernel here has no netem. Each computer is a network namespace with a TUN device, and a relay,
which is this program in a namespace between them, carries packets from one device to the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import fcntl
import json
import os
import random
import secrets
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.network.namespaces import Computer
from tests.support.paths import REPOSITORY

MAX_QUEUE = 0.2
"""Seconds that a packet may wait for those before it; others are lost."""
EXTRA_DELAY = 0.03
"""Seconds by which a packet is late that others overtake."""
DEVICE = "tun0"
_MAX_PACKET = 65535
_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x1001
_READY = "ready"


@dataclass(frozen=True)
class Rule:
    """What the network does with the packets of each direction."""

    delay: float = 0.0
    """Seconds."""
    loss: float = 0.0
    """Share of the packets that are lost."""
    reordered: float = 0.0
    """Share of the packets that others overtake."""
    bits_per_second: int | None = None
    is_cut: bool = False


@dataclass
class SlowNetwork:
    _relay: subprocess.Popen[str]

    def apply(self, rule: Rule) -> None:
        """Treat packets so from now on."""
        self._ask(dataclasses.asdict(rule))

    def count_bytes(self) -> list[int]:
        """Return the bytes that each computer has sent."""
        found: list[int] = self._ask(None)
        return found

    def _ask(self, message: object) -> Any:
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        self._relay.stdin.write(json.dumps(message) + "\n")
        self._relay.stdin.flush()
        return json.loads(self._relay.stdout.readline())


@contextlib.contextmanager
def slow_network() -> Iterator[tuple[Computer, Computer, SlowNetwork]]:
    """Yield two computers and their network, which is connected to nothing else."""
    tag = secrets.token_hex(3)
    middle = f"wire{tag}"
    computers = [Computer(f"slow{tag}{each}", f"10.78.0.{each}") for each in (1, 2)]
    with contextlib.ExitStack() as stack:
        for namespace in (middle, *(each.namespace for each in computers)):
            _ip("netns", "add", namespace)
            stack.callback(_ip, "netns", "del", namespace)
        relay = stack.enter_context(_run_relay(middle, computers))
        for computer in computers:
            there = computer.namespace
            _ip("-n", there, "addr", "add", f"{computer.address}/24", "dev", DEVICE)
            _ip("-n", there, "link", "set", "lo", "up")
            _ip("-n", there, "link", "set", DEVICE, "up")
            _ip("-n", there, "route", "add", "default", "dev", DEVICE)
        first, second = computers
        yield first, second, SlowNetwork(relay)


def change_address(computer: Computer, address: str) -> Computer:
    """Give a computer another address, as another network would."""
    there = computer.namespace
    _ip("-n", there, "addr", "del", f"{computer.address}/24", "dev", DEVICE)
    _ip("-n", there, "addr", "add", f"{address}/24", "dev", DEVICE)
    _ip("-n", there, "route", "replace", "default", "dev", DEVICE)
    return Computer(there, address)


@contextlib.contextmanager
def _run_relay(namespace: str, computers: list[Computer]) -> Iterator[subprocess.Popen[str]]:
    """Run this program, which ends with its standard input."""
    command = (
        sys.executable,
        "-m",
        "tests.support.network.slow_network",
        *(each.namespace for each in computers),
    )
    with subprocess.Popen(
        ["ip", "netns", "exec", namespace, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    ) as relay:
        try:
            assert relay.stdout is not None
            assert relay.stdout.readline().strip() == _READY, "the relay did not start"
            yield relay
        finally:
            assert relay.stdin is not None
            relay.stdin.close()
            relay.wait(10)


class Direction:
    """Carries packets from one device to another."""

    def __init__(self, source: int, target: int) -> None:
        self.rule = Rule()
        self.sent = 0
        """Bytes, lost ones included."""
        self._source = source
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._free_at = 0.0
        """When the network has sent all packets that wait."""
        self._random = random.Random(7)
        self._loop.add_reader(source, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._carry(os.read(self._source, _MAX_PACKET))

    def _carry(self, packet: bytes) -> None:
        self.sent += len(packet)
        now = self._loop.time()
        if self._random.random() < self.rule.loss:
            return
        at = now + self.rule.delay
        if self.rule.bits_per_second is not None:
            start = max(now, self._free_at)
            if start - now > MAX_QUEUE:
                return
            self._free_at = start + len(packet) * 8 / self.rule.bits_per_second
            at += self._free_at - now
        if self._random.random() < self.rule.reordered:
            at += EXTRA_DELAY
        if at > now:
            self._loop.call_at(at, self._write, packet)
        else:
            self._write(packet)

    def _write(self, packet: bytes) -> None:
        # A device that is down refuses packets, as a cable that is pulled.
        with contextlib.suppress(OSError):
            if not self.rule.is_cut:
                os.write(self._target, packet)


async def relay_packets(namespaces: list[str]) -> None:
    """Carry packets, and obey the rules on standard input until it ends."""
    first, second = (_open_device(f"tun{number}", each) for number, each in enumerate(namespaces))
    directions = [Direction(first, second), Direction(second, first)]
    print(_READY, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted = json.loads(line)
        if wanted is not None:
            for direction in directions:
                direction.rule = Rule(**wanted)
        print(json.dumps([direction.sent for direction in directions]), flush=True)


def _open_device(name: str, namespace: str) -> int:
    """Create a TUN device in a namespace, and return its file descriptor."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER))
    _ip("link", "set", name, "netns", namespace, "name", DEVICE)
    return device


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    asyncio.run(relay_packets(sys.argv[1:]))

"""Network namespaces for tests: computers of their own, connected by a switch."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY

_CLONE_NEWNET = 0x40000000


def _can_make_networks() -> bool:
    """Try it: root may lack the right in a container."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"ns{secrets.token_hex(3)}"
    added = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return added.returncode == 0


CAN_MAKE_NETWORKS = _can_make_networks()
needs_namespaces = pytest.mark.skipif(
    not CAN_MAKE_NETWORKS, reason="needs iproute2, and the right to make networks"
)


@dataclass(frozen=True)
class Computer:
    namespace: str
    address: str

    @property
    def prefix(self) -> list[str]:
        """The beginning of a command that runs there."""
        return ["ip", "netns", "exec", self.namespace]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, *command],
            check=check,
            capture_output=True,
            text=True,
            timeout=150,
            cwd=REPOSITORY,
        )

    def set_names(self, addresses: Mapping[str, str]) -> None:
        """Let it know computers by name."""
        directory = Path("/etc/netns", self.namespace)
        directory.mkdir(parents=True, exist_ok=True)
        lines = ["127.0.0.1 localhost", *(f"{each} {name}" for name, each in addresses.items())]
        (directory / "hosts").write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def local_network(count: int) -> Iterator[Sequence[Computer]]:
    """Yield computers on one network, which is connected to nothing else."""
    tag = secrets.token_hex(3)
    switch = f"sw{tag}"
    computers = [Computer(f"ns{tag}{number}", f"10.77.0.{number + 1}") for number in range(count)]
    with contextlib.ExitStack() as stack:
        _ip("netns", "add", switch)
        stack.callback(_ip, "netns", "del", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        _ip("-n", switch, "link", "set", "br0", "up")
        for number, computer in enumerate(computers):
            there, port = computer.namespace, f"p{number}"
            _ip("netns", "add", there)
            stack.callback(shutil.rmtree, f"/etc/netns/{there}", ignore_errors=True)
            stack.callback(_ip, "netns", "del", there)
            peer = ("type", "veth", "peer", "name", port, "netns", switch)
            _ip("-n", there, "link", "add", "eth0", *peer)
            _ip("-n", switch, "link", "set", port, "master", "br0", "up")
            _ip("-n", there, "addr", "add", f"{computer.address}/24", "dev", "eth0")
            _ip("-n", there, "link", "set", "lo", "up")
            _ip("-n", there, "link", "set", "eth0", "up")
            _ip("-n", there, "route", "add", "default", "dev", "eth0")
        yield computers


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """Let this thread, and the programs that it starts, have a network with nobody else on it."""
    namespace = f"own{secrets.token_hex(3)}"
    _ip("netns", "add", namespace)
    try:
        _ip("-n", namespace, "link", "set", "lo", "up")
        with _inside(namespace):
            yield
    finally:
        _ip("netns", "del", namespace)


def on_computer(computer: Computer) -> contextlib.AbstractContextManager[None]:
    """Let this thread, and the programs that it starts, use the network of a computer."""
    return _inside(computer.namespace)


@contextlib.contextmanager
def _inside(namespace: str) -> Iterator[None]:
    with (
        Path("/proc/thread-self/ns/net").open() as own,
        Path("/run/netns", namespace).open() as other,
    ):
        _enter_namespace(other.fileno())
        try:
            yield
        finally:
            _enter_namespace(own.fileno())


def _enter_namespace(descriptor: int) -> None:
    # os.setns needs Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns failed")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=60)

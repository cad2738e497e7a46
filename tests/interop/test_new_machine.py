"""From nothing to a machine that an SDK client reaches by name, with the commands of the guides.

The cloud, the machine and the client are computers of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.machine.running import PROGRAM, Server, start_server
from tests.support.network.namespaces import Computer, local_network, needs_namespaces

pytestmark = needs_namespaces

DOMAIN = "fleet.test"
PORT = 8090
CLI = (sys.executable, "-m", "cogwork.cli.main")
CLOUD = (sys.executable, "-m", "cogwork.cloud.main")
WHEEL = {"components": [{"name": "wheel", "api": "rdk:component:motor", "model": "fake"}]}
DIRECT = """
import asyncio, os, pathlib, sys

address, key_id, key_file, os.environ["SSL_CERT_FILE"] = sys.argv[1:]
from viam.robot.client import RobotClient

async def main():
    key = pathlib.Path(key_file).read_text()
    options = RobotClient.Options.with_api_key(key, key_id)
    options.dial_options.disable_webrtc = True
    async with await RobotClient.at_address(address, options) as machine:
        print(*(each.name for each in machine.resource_names))

asyncio.run(main())
"""
"""Connects over gRPC and TLS. The SDK reads the variable when it is imported."""


@dataclass
class Person:
    """Someone who types commands at a computer."""

    computer: Computer
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "COGWORK_HOME": str(self.directory / "home")}

    def run(self, program: Sequence[str], *words: str) -> str:
        done = subprocess.run(
            [*self.computer.prefix, *program, *words],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextlib.asynccontextmanager
    async def serve(
        self,
        program: Sequence[str],
        *words: str,
        authority: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Server]:
        environment = {"COGWORK_HOME": self.environment["COGWORK_HOME"], **(variables or {})}
        if authority is not None:
            environment["SSL_CERT_FILE"] = str(authority)
        command = (*self.computer.prefix, *program)
        async with start_server(words, environment, program=command) as server:
            await server.wait_until_serving()
            yield server


def find(text: str, label: str) -> str:
    return text.partition(label)[2].split()[0]


async def test_client_reaches_a_new_machine_by_name(tmp_path: Path) -> None:
    with local_network(3) as computers:
        host, machine, client = (
            Person(computer, tmp_path / name)
            for computer, name in zip(computers, ("cloud", "machine", "client"), strict=True)
        )
        for each in (host, machine, client):
            each.directory.mkdir()
        at = host.computer.address
        machine.computer.set_names({DOMAIN: at})
        began = time.monotonic()
        certificates = host.directory / "certs"
        key = host.run(CLOUD, "init", "--domain", DOMAIN)
        host.run(CLI, "certs", "local", DOMAIN, at)
        async with host.serve(
            CLOUD,
            *("serve", "--address", f"0.0.0.0:{PORT}", "--public-address", f"{DOMAIN}:{PORT}"),
            *("--tls-cert", str(certificates / "cert.pem")),
            *("--tls-key", str(certificates / "key.pem")),
        ) as cloud:
            (client.directory / "key").write_text(find(key, "key: "))
            login = ("--key-id", find(key, "key ID: "), "--key-file", "key")
            authority = certificates / "ca.pem"
            client.run(
                CLI, "fleet", "login", f"https://{at}:{PORT}", *login, "--ca", str(authority)
            )
            client.run(CLI, "fleet", "location", "create", "Hall 1")
            client.run(CLI, "fleet", "machine", "create", "press", "-o", "press.json")
            (client.directory / "wheel.json").write_text(json.dumps(WHEEL))
            client.run(CLI, "fleet", "config", "edit", "press", "--file", "wheel.json", "--yes")
            (part,) = json.loads(client.run(CLI, "fleet", "parts", "press", "--json"))
            name = part["fqdn"]
            # A wildcard in DNS would do that.
            client.computer.set_names({name: at})
            location = name.partition(".")[2]
            host.run(CLI, "certs", "local", DOMAIN, at, f"*.{location}")
            await cloud.out.wait_for("the TLS certificate was replaced")
            file = client.directory / "press.json"
            async with machine.serve(PROGRAM, "-config", str(file), authority=authority) as server:
                await server.out.wait_for("waiting for clients at the signaling server")
                reached = json.loads(
                    client.run(CLI, "fleet", "connect", "press", "--check", "--json")
                )
                took = time.monotonic() - began
                program = client.run(CLI, "fleet", "connect", "press")
                variables = (
                    f"SSL_CERT_FILE={authority}",
                    f"COGWORK_FLEET_KEY_ID={login[1]}",
                    f"COGWORK_FLEET_KEY={find(key, 'key: ')}",
                )
                assert "wheel" in client.run(("env", *variables, sys.executable, "-c"), program)
                assert reached["resources"] == ["rdk:component:motor/wheel"]
                # Its name leads to the cloud, so that was WebRTC. On its own network:
                client.computer.set_names({name: machine.computer.address})
                names = client.run(
                    (sys.executable, "-c", DIRECT),
                    *(f"{name}:8080", login[1], "key", str(host.directory / "home/cloud/ca.pem")),
                )
                assert names.split() == ["wheel", "builtin"]
    print(f"=> from nothing to a client that is connected by name: {took:.1f} s")
    assert took < 120

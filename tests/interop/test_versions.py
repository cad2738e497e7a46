"""This version and the one before: server, agent and cloud in every combination, as released."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import trustme
from benchmarks.parts.webrtc_client import WebRtcClient
from tests.interop import unknown_field_module, version_client
from tests.modules.make import executable
from tests.support.agent.real_machine import RealMachine
from tests.support.agent.real_releases import RealRelease, current_release, earlier_release
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.modular import poll
from tests.support.machine.running import start_server
from tests.support.sizes import limit

from cogwork.core.versions.product import Product
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.robot.v1.robot_pb2 import ResourceNamesResponse  # noqa: E402

# Releases are built, and a new agent is on trial for a minute.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]

SERVER, AGENT = Product.SERVER, Product.AGENT
RELEASES = {"N": current_release, "N-1": earlier_release}
SENSOR = {"name": "scale", "api": "rdk:component:sensor", "model": "fake"}
FUTURE = {"kind": "of a newer version", "list": [1, 2.5, "three", {"größe": True}]}
QUICK = {"check_interval": 1, "probe_interval": 0.5}
INSTALLING = 300.0


class VersionCloud(CloudProcess):
    def __init__(self, directory: Path, release: RealRelease) -> None:
        python = str(release.slot(SERVER) / "bin" / "python")
        super().__init__(directory, (python, "-I", "-m", "cogwork.cloud.main"))

    async def add(self, release: RealRelease) -> None:
        for product in Product:
            await self.command("release", "add", str(release.archive(product)))

    async def roll_out(self, product: Product, version: str) -> None:
        await self.command("release", "rollout", "stable", product, version, "--stages", "100")

    async def wait_until_updated(self, product: Product, version: str) -> None:
        """Wait until the cloud knows that the machine has the version."""

        async def count() -> int:
            found = json.loads(await self.command("release", "status", "--json"))
            (rollout,) = (each for each in found if each["product"] == product)
            assert rollout["failed"] == 0, rollout
            return int(rollout["updated"]) if rollout["version"] == version else 0

        await poll(count, lambda found: found == 1)


class VersionMachine(RealMachine):
    """A machine that has joined a cloud, and whose files a newer agent has written before."""

    def __init__(self, directory: Path, agent: RealRelease, server: RealRelease) -> None:
        super().__init__(directory, agent, server)
        self.settings |= {**QUICK, "server_arguments": [], "future_setting": FUTURE}
        self.part = ""
        # The SDK logs in only where it finds TLS; on this computer, it takes any certificate.
        certificate = trustme.CA().issue_cert("localhost")
        chain, key = directory / "localhost.pem", directory / "localhost.key"
        certificate.cert_chain_pems[0].write_to_path(chain)
        certificate.private_key_pem.write_to_path(key)
        self.network = {"tls_cert_file": str(chain), "tls_key_file": str(key)}
        self._write_state({AGENT: agent.version, SERVER: server.version})

    def _write_state(self, versions: Mapping[Product, str]) -> None:
        state: dict[str, Any] = {
            product: {
                "last_good": version,
                "failed": {"9.0.0": {"reason": "it crashed", "time": 1.0, "future": FUTURE}},
                "future": FUTURE,
            }
            for product, version in versions.items()
        }
        body = json.dumps({**state, "future_product": {"last_good": "1.0.0"}}).encode()
        self.layout.state.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        waiting = {"phase": "waiting", "version": "9.0.0", "detail": "", "since": 1, "future": 1}
        progress = {"source_fault": None, "products": {SERVER: waiting}, "future": FUTURE}
        self.layout.progress.write_text(json.dumps(progress))

    async def join(self, cloud: CloudProcess) -> None:
        self.part, secret = await cloud.create_machine("press")
        credentials = {"id": self.part, "secret": secret, "app_address": f"http://{cloud.address}"}
        self.save({"cloud": credentials})

    async def status(self) -> Any:
        """Return what the command of the installed agent prints."""
        version = self.layout.current_version(AGENT)
        assert version is not None
        python = str(self.layout.slot(AGENT, version) / "bin" / "python")
        program = (python, "-I", "-m", "cogwork.agent.main")
        arguments = ["status", "--json", "--root", str(self.layout.root)]
        async with start_server(arguments, program=program) as command:
            assert await command.exit_code() == 0, command.output
            return json.loads("\n".join(command.out.lines))

    def log(self) -> str:
        return (self.layout.root / "server.out").read_text(errors="replace")


async def run_client(cloud: CloudProcess, machine: VersionMachine, **options: Any) -> Any:
    """Return what a client with the unmodified SDK observes."""
    given = {
        "cloud": cloud.address,
        "key_id": cloud.key_id,
        "key": cloud.key,
        "part": machine.part,
        "machine": machine.port,
        **options,
    }
    program = (sys.executable, "-I", version_client.__file__)
    async with start_server([json.dumps(given)], program=program) as client:
        assert await client.exit_code(limit(120)) == 0, client.output
        (line,) = (each for each in client.out.lines if each.startswith("report "))
        return json.loads(line.removeprefix("report "))


async def call_through_cloud(cloud: CloudProcess, machine: VersionMachine) -> list[str]:
    """Return the names of the resources that a WebRTC client finds by the machine's name."""
    owner = await cloud.client().connect()
    part = await owner.app_client.get_robot_part(machine.part)

    async def is_waiting() -> bool:
        return "waiting for clients at the signaling server" in machine.log()

    await poll(is_waiting, bool)
    client = WebRtcClient()
    try:
        async with grpc.aio.insecure_channel(cloud.address) as channel:
            await client.connect(channel, part.fqdn, [*owner._metadata.items()])
        (reply,) = await client.call("/viam.robot.v1.RobotService/ResourceNames", b"")
        return [each.name for each in ResourceNamesResponse.FromString(reply).resources]
    finally:
        await client.close()
        owner.close()


@pytest.mark.parametrize(
    ("server", "agent", "cloud"),
    [
        pytest.param(*each, id="{}-{}-{}".format(*each))
        for each in itertools.product(RELEASES, repeat=3)
    ],
)
async def test_every_combination_serves(
    server: str, agent: str, cloud: str, tmp_path: Path
) -> None:
    versions = {AGENT: RELEASES[agent](), SERVER: RELEASES[server]()}
    machine = VersionMachine(tmp_path / "machine", versions[AGENT], versions[SERVER])
    before = await machine.status()
    assert before["products"]["server"]["failed"] == {"9.0.0": "it crashed"}
    assert before["products"]["server"]["update"]["version"] == "9.0.0"
    its_cloud = VersionCloud(tmp_path / "cloud", RELEASES[cloud]())
    await its_cloud.initialize()
    program = executable(tmp_path / "bin", Path(unknown_field_module.__file__))
    echo = {
        "name": "echo",
        "api": "rdk:component:generic",
        "model": "acme:test:unknown-fields",
        "attributes": {"future": FUTURE},
    }
    config = {
        "components": [{**SENSOR, "attributes": {"future": FUTURE}, "future": FUTURE}, echo],
        "modules": [{"name": "echo", "executable_path": str(program), "future": FUTURE}],
        "network": {**machine.network, "future": FUTURE},
        "future_section": FUTURE,
    }
    async with its_cloud.serve():
        await machine.join(its_cloud)
        began = time.monotonic()
        async with machine.run() as launcher:
            running = {str(product): each.version for product, each in versions.items()}
            added = {**SENSOR, "name": "second", "future": FUTURE}
            report = await run_client(
                its_cloud, machine, config=config, added=added, software=running
            )
            names = await call_through_cloud(its_cloud, machine)
            took = time.monotonic() - began
            assert launcher.process.returncode is None
        assert report["saved"] == config
        assert report["edited"] == {**config, "components": [*config["components"], added]}
        assert report["readings"]
        assert report["unknown"]
        assert report["software"] == running
        # Version 0.1 says it without the name.
        assert report["version"].removeprefix("cogwork-") == running["server"]
        assert {"scale", "echo", "second"} <= {*names}
        assert not [*machine.layout.root.glob("state.damaged-*")]
        assert "9.0.0" in machine.state(SERVER).failed
    print(f"=> server {server}, agent {agent}, cloud {cloud}: all of it in {took:.1f} s")


@pytest.mark.parametrize("cloud", RELEASES)
async def test_rollouts_of_the_cloud_go_to_the_next_version_and_back(
    cloud: str, tmp_path: Path
) -> None:
    former, new = earlier_release(), current_release()
    machine = VersionMachine(tmp_path / "machine", former, former)
    its_cloud = VersionCloud(tmp_path / "cloud", RELEASES[cloud]())
    await its_cloud.initialize()
    for release in (former, new):
        await its_cloud.add(release)
    async with its_cloud.serve():
        await machine.join(its_cloud)
        async with machine.run() as launcher:
            await machine.wait_for_version(former.version)
            for release in (new, former):
                for product in (SERVER, AGENT):
                    began = time.monotonic()
                    server = machine.server_process
                    await its_cloud.roll_out(product, release.version)
                    if product is SERVER:
                        await machine.wait_for_version(release.version, INSTALLING)
                        await machine.wait_for_phase("current", release.version, INSTALLING)
                    else:
                        words = f"version {release.version} of the agent works"
                        await launcher.err.wait_for(words, within=INSTALLING)
                        assert machine.server_process == server
                    await its_cloud.wait_until_updated(product, release.version)
                    assert machine.state(product).last_good == release.version
                    took = time.monotonic() - began
                    print(f"=> cloud {cloud}: {product} to {release.version} in {took:.0f} s")
        assert not [*machine.layout.root.glob("state.damaged-*")]

"""Keys of the cloud are replaced while it is served: nothing fails that worked before."""

from __future__ import annotations

import asyncio
import datetime
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store
from tests.support.cloud.cloud_at_rest import add_machine, identify, new_cloud, open_plane

from cogwork.auth.certificate_authority import issue_certificate
from cogwork.auth.errors import Unauthenticated
from cogwork.auth.tokens import ExternalKeys, read_key_id
from cogwork.cloud.commands import key_commands
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.control_plane.key_watcher import KeyWatcher
from cogwork.cloud.keys.cloud_key import KeyPurpose
from cogwork.cloud.keys.key_records import (
    RotationPending,
    list_cloud_keys,
    list_part_token_keys,
)
from cogwork.cloud.keys.resealing import SEALED_TABLES
from cogwork.cloud.storage.bus import describe_change, part_topic
from cogwork.cloud.storage.select import query_values
from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import run_in_thread

DAY = 86_400.0
START = 1_800_000_000.0
HOST = "press.hall.fleet.test"


@dataclass
class ServedCloud:
    plane: ControlPlane
    directory: CloudDirectory
    clock: ManualClock
    watcher: KeyWatcher
    owner: tuple[str, str]
    """The ID of the owner's key, and the key."""

    async def rotate(self, purpose: KeyPurpose, *, at_once: bool = False) -> None:
        """Rotate a key as another process does it."""

        def work() -> None:
            key_commands.rotate(self.directory, purpose, self.clock, at_once=at_once)

        await run_in_thread("rotate", 30, work)

    async def wait(self, seconds: float) -> None:
        """Let time pass, at the end of which the keys are read again."""
        self.clock._now += seconds  # without each of the sleepers that wake meanwhile
        await self.watcher.refresh()

    async def log_in(self) -> str:
        return await self.plane.login.log_in(self.owner[0], "api-key", self.owner[1], "::1")

    async def token_keys(self) -> ExternalKeys:
        """The keys that a machine gets with its access list now."""
        keys = await self.plane.context.records.read(list_part_token_keys)
        return ExternalKeys({"keys": keys}, HOST)

    def issue_part_token(self) -> str:
        return self.plane.context.machine_tokens.issue([HOST], "k", {}, self.clock.time())

    async def count(self, purpose: KeyPurpose) -> int:
        rows = await self.plane.context.records.read(list_cloud_keys)
        return sum(key.purpose is purpose for key in rows)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[CloudDirectory, tuple[str, str]]:
    path = tmp_path_factory.mktemp("cloud")
    directory, new = new_cloud(path, ManualClock(START))
    return directory, (new.key_id, new.key)


@pytest.fixture
async def cloud(
    template: tuple[CloudDirectory, tuple[str, str]], tmp_path: Path
) -> AsyncIterator[ServedCloud]:
    path = Path(shutil.copytree(template[0].path, tmp_path / "cloud"))
    directory, clock = CloudDirectory(path), ManualClock(START + 1)
    async with open_plane(directory, clock) as plane:
        watcher = KeyWatcher(plane.context, directory)
        yield ServedCloud(plane, directory, clock, watcher, template[1])


async def test_tokens_of_a_retired_key_are_accepted_for_400_days(cloud: ServedCloud) -> None:
    old = await cloud.log_in()
    await cloud.rotate(KeyPurpose.TOKEN)
    await cloud.wait(5)
    # Other processes of the cloud may not know the next key yet.
    assert read_key_id(await cloud.log_in()) == read_key_id(old)
    await cloud.wait(60)
    new = await cloud.log_in()
    assert read_key_id(new) != read_key_id(old)
    for _ in range(4):
        for token in (old, new):
            assert (await identify(cloud.plane, token)).id == cloud.owner[0]
        await cloud.wait(99 * DAY)
    await cloud.wait(10 * DAY)
    assert (await identify(cloud.plane, new)).id == cloud.owner[0]
    with pytest.raises(Unauthenticated, match="unknown key; log in again"):
        await identify(cloud.plane, old)
    assert await cloud.count(KeyPurpose.TOKEN) == 1


async def follow(plane: ControlPlane, token: str) -> None:
    """Make a call that goes on until it is ended."""

    async def handle(stream: Any) -> None:
        await identify(plane, token)
        await asyncio.Event().wait()

    call: Any = None
    await plane.context.calls.wrap(call, handle)(call)


async def test_stolen_token_key_ends_at_once(cloud: ServedCloud) -> None:
    old = await cloud.log_in()
    waiting = asyncio.create_task(follow(cloud.plane, old))
    await identify(cloud.plane, old)
    await cloud.rotate(KeyPurpose.TOKEN)
    await cloud.wait(5)
    assert not waiting.done()
    await cloud.rotate(KeyPurpose.TOKEN, at_once=True)
    await cloud.watcher.refresh()
    async with asyncio.timeout(30):
        with pytest.raises(Unauthenticated, match="log in again"):
            await waiting
    with pytest.raises(Unauthenticated):
        await identify(cloud.plane, old)
    await identify(cloud.plane, await cloud.log_in())
    assert await cloud.count(KeyPurpose.TOKEN) == 1


async def test_machines_know_a_part_token_key_before_it_signs(cloud: ServedCloud) -> None:
    """Whatever is signed is accepted by a machine whose access list is up to a day old, and tokens
    of the last hour by one whose access list is new."""
    known = [await cloud.token_keys()]
    tokens = [cloud.issue_part_token()]
    await cloud.rotate(KeyPurpose.PART_TOKEN)
    for hour in range(60):
        await cloud.wait(3600)
        known.append(await cloud.token_keys())
        tokens.append(cloud.issue_part_token())
        for keys in known[-24:]:
            keys.verify(tokens[-1], read_key_id(tokens[-1]))
        for token in tokens[-2:]:
            known[-1].verify(token, read_key_id(token))
        assert (read_key_id(tokens[-1]) != read_key_id(tokens[0])) == (hour >= 23)
    assert await cloud.count(KeyPurpose.PART_TOKEN) == 1


async def test_connected_machines_are_told_of_part_token_keys(cloud: ServedCloud) -> None:
    context = cloud.plane.context
    part: Any = SimpleNamespace(id="p1", machine_id="m1")
    with context.presence.connected(part):
        async with context.bus.listen(part_topic("p1")) as hints:
            await cloud.rotate(KeyPurpose.PART_TOKEN, at_once=True)
            refreshing = asyncio.create_task(cloud.watcher.refresh())
            async with asyncio.timeout(30):
                assert await anext(hints) == describe_change(())
                while not refreshing.done():  # it pauses between groups of machines
                    await cloud.clock.advance(1)


async def test_certificates_of_both_authorities_are_trusted(cloud: ServedCloud) -> None:
    """A client with a `ca.pem` that is 90 days old trusts a new certificate, and one with a new
    `ca.pem` trusts a certificate that is 90 days old."""
    bundles = [cloud.directory.authorities.read_bytes()]
    certificates = [issue(cloud)]
    await cloud.rotate(KeyPurpose.AUTHORITY)
    for _ in range(27):
        await cloud.wait(7 * DAY)
        bundles.append(cloud.directory.authorities.read_bytes())
        certificates.append(issue(cloud))
        verify(cloud, certificates[-1], bundles[-12:][0])
        verify(cloud, certificates[-12:][0], bundles[-1])
    authorities = {len(x509.load_pem_x509_certificates(each)) for each in bundles}
    assert authorities == {1, 2}
    assert bundles[-1] != bundles[0]
    assert await cloud.count(KeyPurpose.AUTHORITY) == 1


def issue(cloud: ServedCloud) -> bytes:
    """Return the certificate that a machine gets now."""
    now = datetime.datetime.fromtimestamp(cloud.clock.time(), datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(HOST)]
    authority = cloud.plane.context.authority
    return issue_certificate(authority, names, now, ExtendedKeyUsageOID.SERVER_AUTH, 90).certificate


def verify(cloud: ServedCloud, certificate: bytes, bundle: bytes) -> None:
    now = datetime.datetime.fromtimestamp(cloud.clock.time(), datetime.UTC)
    policy = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(bundle))).time(now)
    policy.build_server_verifier(x509.DNSName(HOST)).verify(
        x509.load_pem_x509_certificate(certificate), []
    )


@pytest.mark.parametrize("at_once", [False, True])
async def test_secrets_are_sealed_again(cloud: ServedCloud, at_once: bool) -> None:
    context = cloud.plane.context
    machines = [await add_machine(cloud.plane, cloud.owner[0]) for _ in range(3)]
    former = context.keys.sealing_key[0]
    await cloud.rotate(KeyPurpose.SEALING, at_once=at_once)
    await cloud.wait(5)
    await add_machine(cloud.plane, cloud.owner[0])
    await cloud.wait(60)
    assert context.keys.sealing_key[0] != former
    assert await cloud.count(KeyPurpose.SEALING) == 1
    sealed = await context.records.read(
        lambda tx: [
            each
            for table in SEALED_TABLES
            for each in query_values(tx, str, f"SELECT sealed FROM {table}")
        ]
    )
    assert not [each for each in sealed if each.startswith(former)]
    texts = set(map(context.keyring.unseal, sealed))
    assert texts >= {secret for _, secret in machines}


async def test_a_rotation_begins_after_the_one_before(cloud: ServedCloud) -> None:
    await cloud.rotate(KeyPurpose.PART_TOKEN)
    with pytest.raises(RotationPending):
        await cloud.rotate(KeyPurpose.PART_TOKEN)
    await cloud.wait(2 * DAY)
    await cloud.rotate(KeyPurpose.PART_TOKEN)


async def test_rows_that_cannot_be_read_change_nothing(cloud: ServedCloud) -> None:
    token = await cloud.log_in()
    context = cloud.plane.context
    await context.records.write(lambda tx: tx.execute("UPDATE cloud_key SET sealed = 'x'"))
    with pytest.raises(CogworkError):
        await cloud.watcher.refresh()
    assert (await identify(cloud.plane, token)).id == cloud.owner[0]


async def test_cloud_can_be_opened_with_a_clock_that_is_behind(cloud: ServedCloud) -> None:
    """A computer without a clock of its own starts in 1970."""
    cloud.clock._now = 0.0
    token = await cloud.log_in()
    assert (await identify(cloud.plane, token)).id == cloud.owner[0]

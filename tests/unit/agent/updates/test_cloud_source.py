"""Updates from a cloud: what the machine tells it, and what it makes of the offers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.empty_pb2 import Empty
from tests.support.cloud.scripted_cloud import ScriptedCloud

from cogwork.agent.errors import SourceUnavailable
from cogwork.agent.release.manifest import archive_name
from cogwork.agent.updates.cloud_source import CloudSource, read_cloud
from cogwork.agent.updates.source import UpdateTarget
from cogwork.config.schema.cloud import CloudConfig
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product
from cogwork.resource.sdk import clean_import as sdk
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable, MethodMissing
from cogwork.uplink.link_files import link_directory
from cogwork.uplink.part_secret import store_secret
from cogwork.wire.messages.update_method import Outcome, UpdateReport, parse_report, write_rollbacks

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.agent.v1 import agent_pb2 as pb  # noqa: E402

SERVER, AGENT = Product.SERVER, Product.AGENT
CLOUD = {"id": "part", "secret": "s", "app_address": "https://fleet.test"}
CURRENT = {SERVER: "1.0.0", AGENT: "0.1.0"}
URL = "https://fleet.test/releases/server.tar"


class Site:
    """A machine, and the clouds that it connects to."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = directory / "machine.json"
        self.home = directory / "home"
        self.cloud = ScriptedCloud()
        self.cloud.answer = pb.DeviceAgentConfigResponse()
        self.logins: list[tuple[str, CloudLogin]] = []
        self.closed = 0
        monkeypatch.setattr("cogwork.agent.updates.cloud_source.CloudClient", self._connect)
        self.save(cloud=CLOUD)
        self.source = CloudSource(self.file, self.home)

    def _connect(self, address: str, login: CloudLogin) -> Any:
        if not address.startswith("https"):
            raise CloudUnavailable("the login would be sent unencrypted")
        self.logins.append((address, login))
        return self

    async def call(self, *given: Any) -> Any:
        return await self.cloud.call(*given)

    async def aclose(self) -> None:
        self.closed += 1

    def save(self, **config: Any) -> None:
        self.file.write_text(json.dumps(config))

    def offer(self, rollbacks: tuple[Product, ...] = (), **offers: Any) -> None:
        answer = pb.DeviceAgentConfigResponse(
            viam_server_update_info=offers.get("server"), agent_update_info=offers.get("agent")
        )
        write_rollbacks(answer.advanced_settings, rollbacks)
        self.cloud.answer = answer


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    made = Site(tmp_path, monkeypatch)
    yield made
    await made.source.aclose()


async def test_cloud_learns_what_is_installed_and_what_has_proved_itself(site: Site) -> None:
    await site.source.check(CURRENT, ())
    await site.source.check({**CURRENT, AGENT: None}, {SERVER})
    first, second = site.cloud.requests
    assert (first.id, first.host_info.platform) == ("part", PLATFORM)
    assert first.version_info == pb.VersionInfo(
        agent_running="0.1.0",
        agent_installed="0.1.0",
        viam_server_running="1.0.0",
        viam_server_installed="1.0.0",
    )
    # A version on trial runs, but the cloud must not conclude that it works.
    assert second.version_info == pb.VersionInfo(viam_server_installed="1.0.0")
    assert site.logins == [("https://fleet.test", CloudLogin("part", "robot-secret", "s"))]


async def test_offers_become_targets(site: Site) -> None:
    site.offer(
        (AGENT,),
        server=pb.UpdateInfo(version="1.1.0", url=URL, sha256=b"\x01\xff"),
        agent=pb.UpdateInfo(version="0.0.9", url=URL),
    )
    assert await site.source.check(CURRENT, ()) == {
        SERVER: UpdateTarget("1.1.0", URL, "01ff"),
        AGENT: UpdateTarget("0.0.9", URL, is_rollback=True),
    }


@pytest.mark.parametrize(
    "offer",
    [
        pb.UpdateInfo(version="1.1.0"),  # the machine keeps what it has
        pb.UpdateInfo(version="", url=URL),
        pb.UpdateInfo(version="../1", url=URL),
        pb.UpdateInfo(version="customURL", url="https://builds.test/other.tar"),
    ],
)
async def test_offer_of_nothing(site: Site, offer: Any) -> None:
    site.offer(server=offer)
    assert await site.source.check(CURRENT, ()) == {}


async def test_address_of_an_own_build_names_its_version(site: Site) -> None:
    url = f"https://builds.test/a/{archive_name(SERVER, '1.5.0', PLATFORM)}?key=1"
    site.offer(server=pb.UpdateInfo(version="customURL", url=url))
    assert await site.source.check(CURRENT, ()) == {SERVER: UpdateTarget("1.5.0", url)}


async def test_outcome_is_reported_in_the_name_of_the_part(site: Site) -> None:
    site.cloud.answer = Empty()
    report = UpdateReport(SERVER, "1.1.0", Outcome.FAILED, reason="it crashed", since=5.0)
    await site.source.report(report)
    found = parse_report(site.cloud.requests[0])
    assert (found.id, found.outcome, found.reason) == ("part", Outcome.FAILED, "it crashed")


async def test_cloud_that_is_away(site: Site) -> None:
    site.cloud.answer = CloudUnavailable("it is away")
    report = UpdateReport(SERVER, "1.1.0", Outcome.GOOD)
    with pytest.raises(SourceUnavailable, match="it is away"):
        await site.source.check(CURRENT, ())
    with pytest.raises(SourceUnavailable, match="it is away"):
        await site.source.report(report)
    site.cloud.answer = MethodMissing("a cloud of others")
    await site.source.report(report)


async def test_machine_that_joins_another_cloud(site: Site) -> None:
    await site.source.check(CURRENT, ())
    await site.source.check(CURRENT, ())
    assert (len(site.logins), site.closed) == (1, 0)
    site.save(cloud={**CLOUD, "app_address": "https://other.test"})
    await site.source.check(CURRENT, ())
    assert ([address for address, _ in site.logins], site.closed) == (
        ["https://fleet.test", "https://other.test"],
        1,
    )


async def test_secret_that_the_cloud_has_replaced(site: Site) -> None:
    await site.source.check(CURRENT, ())
    directory = link_directory(site.home, CloudConfig.model_validate(CLOUD))
    store_secret(directory, "s", "newer")
    await site.source.check(CURRENT, ())
    assert [login.secret for _, login in site.logins] == ["s", "newer"]


async def test_address_that_cannot_be_used(site: Site) -> None:
    await site.source.check(CURRENT, ())
    site.save(cloud={**CLOUD, "app_address": "http://fleet.test"})
    with pytest.raises(SourceUnavailable, match="unencrypted"):
        await site.source.check(CURRENT, ())
    site.save(cloud=CLOUD)
    await site.source.check(CURRENT, ())
    assert len(site.logins) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        (b"\xff", "is not JSON"),
        ("[]", "names no cloud"),
        ("{}", "names no cloud"),
        ('{"cloud": {"id": "part"}}', "names no cloud"),
        (None, "cannot be read: No such file"),
    ],
)
def test_file_without_a_cloud(tmp_path: Path, text: str | bytes | None, reason: str) -> None:
    file = tmp_path / "machine.json"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SourceUnavailable, match=reason):
        read_cloud(file)


def test_file_may_have_variables_and_keys_in_any_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PART_SECRET", "s")
    file = tmp_path / "machine.json"
    for text in (
        '{"cloud": {"id": "part", "secret": "${PART_SECRET}"}}',
        '{"Cloud": {"ID": "part", "Secret": "s"}}',
    ):
        file.write_text(text)
        assert read_cloud(file).secret == "s"

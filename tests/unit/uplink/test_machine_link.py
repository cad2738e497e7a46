"""Everything between a machine and its cloud, with a scripted cloud and a manual clock."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.waiting import wait_until
from viam.gen.app.v1.robot_pb2 import (
    CertificateResponse,
    ConfigResponse,
    LogResponse,
    NeedsRestartResponse,
    RobotConfig,
)
from viam.gen.app.v1.robot_pb2 import (
    CloudConfig as CloudMessage,
)

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    encode_access_list,
    index_entries,
)
from cogwork.auth.roles import Role
from cogwork.config.schema.cloud import CloudConfig
from cogwork.core.clock import ManualClock
from cogwork.logs.entry import Entry
from cogwork.logs.spool import Spool
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable, CredentialsRefused, RetryLater
from cogwork.uplink.link_files import CERTIFICATE_FILE, LOG_DIRECTORY
from cogwork.uplink.machine_link import MachineLink

START = 1_800_000_000.0
NAME = "press.hall.fleet.test"
FILE: dict[str, Any] = {"cloud": {"id": "part", "secret": "s", "app_address": "https://fleet.test"}}
AUTHORITY = trustme.CA()


def list_keys(*keys: str, issued_at: float = START) -> AccessList:
    entries = [
        AccessEntry(Principal(PrincipalKind.KEY, key), Role.OWNER, bytes(32)) for key in keys
    ]
    revision = ",".join(keys) or "none"
    until = issued_at + 86_400
    return AccessList("part", index_entries(entries), {"keys": []}, revision, issued_at, until)


class Cloud:
    """A cloud whose answers are those of a test, by the name of the method."""

    def __init__(self) -> None:
        self.access = list_keys("a")
        self.revision = "1"
        self.config = RobotConfig(cloud=CloudMessage(fqdn=NAME, signaling_insecure=True))
        self.must_restart = False
        self.faults: dict[str, Exception] = {}
        self.calls: Counter[str] = Counter()
        self.lines: list[str] = []
        """Of the log of the machine."""
        self.logins: list[CloudLogin] = []
        self.news: asyncio.Queue[Struct] = asyncio.Queue()
        self.streams = 0
        self.is_closed = False
        self.on_access: Callable[[], None] = lambda: None
        """Called while the access list is being fetched."""
        self.arrives = asyncio.Event()
        """Cleared while answers are on their way."""
        self.arrives.set()

    def connect(self, _: str, login: CloudLogin, **__: Any) -> Cloud:
        self.logins.append(login)
        return self

    def use_login(self, login: CloudLogin) -> None:
        self.logins.append(login)

    async def call(self, path: str, request: Any, *_: Any) -> Message:
        method = path.rpartition("/")[2]
        self.calls[method] += 1
        if method in self.faults:
            raise self.faults[method]
        answer: Message = getattr(self, f"_{method}")(request)
        await self.arrives.wait()
        return answer

    async def stream(self, *_: Any) -> AsyncIterator[Struct]:
        self.streams += 1
        while True:
            yield await self.news.get()

    async def aclose(self) -> None:
        self.is_closed = True

    def _GetAccess(self, request: StringValue) -> StringValue:  # noqa: N802 - a method's name
        assert request.value == "part"
        found = encode_access_list(self.access)
        self.on_access()
        return StringValue(value=found)

    def _Config(self, request: Any) -> ConfigResponse:  # noqa: N802
        assert request.id == "part"
        self.config.revision = self.revision
        return ConfigResponse(config=self.config)

    def _Certificate(self, _: Any) -> CertificateResponse:  # noqa: N802
        issued = AUTHORITY.issue_cert(NAME)
        return CertificateResponse(
            tls_certificate=issued.cert_chain_pems[0].bytes().decode(),
            tls_private_key=issued.private_key_pem.bytes().decode(),
        )

    def _NeedsRestart(self, _: Any) -> NeedsRestartResponse:  # noqa: N802
        reply = NeedsRestartResponse(must_restart=self.must_restart)
        reply.restart_check_interval.FromSeconds(3600)
        return reply

    def _Log(self, request: Any) -> LogResponse:  # noqa: N802
        self.lines += [each.message for each in request.logs]
        return LogResponse()


class Site:
    """A machine, which is the host of its link, and its cloud."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.clock, self.cloud = directory, ManualClock(START), Cloud()
        monkeypatch.setattr("cogwork.uplink.machine_link.CloudClient", self.cloud.connect)
        self.put: Callable[[Entry], None] | None = None
        self.certificates: list[Path] = []
        self.keys: list[str] = []
        """Those that can log in."""
        self.notices: Sequence[str] = ()
        self.restarts: list[str] = []
        self.link = self.connect()

    def connect(self) -> MachineLink:
        cloud = CloudConfig.model_validate(FILE["cloud"])
        self.link = MachineLink(cloud, self.directory, self, self.clock, allow_plaintext=False)
        return self.link

    def send_log_to(self, put: Callable[[Entry], None] | None) -> None:
        self.put = put

    def use_certificate(self, file: Path) -> None:
        self.certificates.append(file)

    def use_access(self, access: AccessList) -> None:
        self.keys = [key for _, key in access.entries]

    def use_notices(self, notices: Sequence[str]) -> None:
        self.notices = notices

    def restart(self, reason: str) -> None:
        self.restarts.append(reason)

    def log(self, text: str) -> None:
        assert self.put is not None
        self.put(Entry(self.clock.time(), logging.INFO, "test", "test.py:1", text))

    async def tell(self, **news: Any) -> None:
        message = Struct()
        message.update(news)
        self.cloud.news.put_nowait(message)
        await self.clock.settle()

    async def until(self, condition: Callable[[], object], step: float = 0.1) -> None:
        """Let time pass until the condition is met, and what threads do be done."""
        for _ in range(200):
            if condition():
                return
            await self.clock.advance(step)
            await asyncio.to_thread(lambda: None)
        await wait_until(condition, 5)

    def render(self, message: bytes) -> Any:
        return json.loads(self.link.render(message, FILE))


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    made = Site(tmp_path, monkeypatch)
    await made.link.start()
    yield made
    await made.link.aclose()


async def test_configuration_comes_with_who_may_use_the_machine(site: Site) -> None:
    message = await site.link.fetch(1)
    assert site.keys == ["a"]
    found = site.render(message)
    assert found["cloud"]["fqdn"] == NAME
    assert {key: found["cloud"][key] for key in ("id", "secret")} == {"id": "part", "secret": "s"}
    assert site.notices == ()
    with pytest.raises(ValueError, match="parsing"):
        site.link.render(b"\xff", FILE)


async def test_certificate_is_fetched_if_the_cloud_uses_tls(site: Site) -> None:
    await site.link.fetch(1)
    assert site.certificates == []
    site.cloud.config.cloud.signaling_insecure = False
    for _ in range(2):
        await site.link.fetch(1)
    assert site.certificates == [site.directory / CERTIFICATE_FILE]
    assert site.cloud.calls["Certificate"] == 1


async def test_machine_that_starts_again_has_its_certificate_and_its_list(site: Site) -> None:
    site.cloud.config.cloud.signaling_insecure = False
    await site.link.fetch(1)
    await site.link.aclose()
    site.certificates, site.keys = [], []
    await site.connect().start()
    assert site.certificates == [site.directory / CERTIFICATE_FILE]
    assert site.keys == ["a"]


async def test_cloud_that_is_away_gives_no_configuration(site: Site) -> None:
    for method in ("GetAccess", "Config"):
        site.cloud.faults = {method: CloudUnavailable("it is away")}
        with pytest.raises(CloudUnavailable, match="it is away"):
            await site.link.fetch(1)
    assert site.notices == ()


async def test_refused_credentials_are_shown_until_they_are_accepted(site: Site) -> None:
    await site.tell(config="1", access="a", conflict="two servers use them")
    assert site.notices == ["two servers use them"]
    site.cloud.faults = {"GetAccess": CredentialsRefused("the secret was replaced")}
    with pytest.raises(CredentialsRefused):
        await site.link.fetch(1)
    # What the cloud told before is not known any more.
    assert site.notices == ["the secret was replaced"]
    site.cloud.faults.clear()
    await site.link.fetch(1)
    assert site.notices == []


async def test_wrong_clock_is_shown(site: Site) -> None:
    site.cloud.access = list_keys("a", issued_at=START - 7200)
    await site.link.fetch(1)
    (notice,) = site.notices
    assert "clock" in notice
    site.cloud.access = list_keys("a")
    await site.link.fetch(1)
    assert site.notices == []


async def test_change_is_announced_unless_it_is_known(site: Site) -> None:
    pushed = [site.link.is_pushed]
    await site.link.fetch(1)
    await site.tell(config="1", access="a")
    pushed.append(site.link.is_pushed)
    assert pushed == [False, True]
    assert not site.link.change.done()
    await site.tell(config="2", access="a")
    assert site.link.change.done()
    site.cloud.revision = "2"
    await site.link.fetch(1)
    assert not site.link.change.done()
    await site.tell(config="2", access="a")
    assert not site.link.change.done()


async def test_ended_access_ends_at_once(site: Site) -> None:
    site.cloud.access = list_keys("a", "b")
    await site.link.fetch(1)
    asked = site.cloud.calls["GetAccess"]
    await site.tell(ended=["a"])
    assert site.keys == ["b"]
    assert site.cloud.calls["GetAccess"] == asked


async def test_reply_that_was_on_its_way_does_not_bring_ended_access_back(site: Site) -> None:
    site.cloud.access = list_keys("a", "b")
    site.cloud.on_access = lambda: site.link._access.end(["a"])
    await site.link.fetch(1)
    assert site.keys == ["b"]
    site.cloud.on_access = lambda: None
    await site.link.fetch(1)
    assert site.keys == ["a", "b"]  # it has been granted again since


async def test_changed_list_is_fetched_after_a_moment(site: Site) -> None:
    await site.link.fetch(1)
    site.cloud.access = list_keys("a", "b")
    await site.tell(config="1", access="a,b")
    assert site.keys == ["a"]  # not at once, because all machines are told at once
    await site.clock.advance(0.5)
    assert site.keys == ["a", "b"]
    asked = site.cloud.calls["GetAccess"]
    await site.clock.advance(60)
    assert site.cloud.calls["GetAccess"] == asked


async def test_list_that_changes_while_it_is_on_its_way_is_fetched_again(site: Site) -> None:
    await site.link.fetch(1)
    site.cloud.access = list_keys("a", "b")
    site.cloud.arrives.clear()
    await site.tell(config="1", access="a,b")
    await site.clock.advance(0.5)
    site.cloud.access = list_keys("a", "b", "c")
    await site.tell(config="1", access="a,b,c")
    site.cloud.arrives.set()
    await site.until(lambda: site.keys == ["a", "b", "c"])


async def test_changed_list_is_fetched_ever_more_rarely_while_that_fails(site: Site) -> None:
    await site.link.fetch(1)
    site.cloud.faults = {"GetAccess": CloudUnavailable("it is away")}
    await site.tell(config="1", access="b")
    counts = []
    for _ in range(4):
        before = site.cloud.calls["GetAccess"]
        await site.clock.advance(60)
        counts.append(site.cloud.calls["GetAccess"] - before)
    assert 4 < counts[0] < 12
    assert counts[-1] <= 4
    site.cloud.faults.clear()
    site.cloud.access = list_keys("b")
    await site.clock.advance(31)
    assert site.keys == ["b"]


async def test_list_of_another_revision_than_announced_is_asked_for_once(site: Site) -> None:
    await site.link.fetch(1)
    asked = site.cloud.calls["GetAccess"]
    await site.tell(config="1", access="c")  # which has changed again since
    await site.clock.advance(60)
    assert site.cloud.calls["GetAccess"] == asked + 1


async def test_replaced_secret_is_used_and_kept(site: Site) -> None:
    message = await site.link.fetch(1)
    before = site.link.change
    await site.tell(config="1", access="a", secret="newer")
    assert [login.secret for login in site.cloud.logins] == ["s", "newer"]
    assert before.done()  # the configuration has the secret, too
    assert site.render(message)["cloud"]["secret"] == "newer"
    await site.clock.advance(2)
    assert site.cloud.streams == 2  # with the newer login
    await site.tell(config="1", access="a", secret="newer")
    assert len(site.cloud.logins) == 2
    await site.link.aclose()
    await site.connect().start()
    assert site.cloud.logins[-1].secret == "newer"


async def test_secret_that_cannot_be_stored_is_not_used(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cogwork.uplink.machine_link.store_secret", fail)
    await site.tell(config="1", access="a", secret="newer")
    assert [login.secret for login in site.cloud.logins] == ["s"]
    assert "cannot store the new secret" in caplog.text


async def test_restart_is_asked_for_when_the_cloud_hints_at_it(site: Site) -> None:
    await site.clock.advance(6)
    site.cloud.must_restart = True
    await site.clock.advance(60)
    assert site.restarts == []
    await site.tell(config="1", access="a")
    assert site.restarts == ["someone asked for a restart in the cloud"]


async def test_stranger_makes_the_machine_ask_for_its_list(site: Site) -> None:
    await site.link.fetch(1)
    site.cloud.access = list_keys("a", "b")
    asking = asyncio.ensure_future(site.link.ask_access())
    await site.clock.advance(1)
    assert await asking
    assert site.keys == ["a", "b"]


async def test_log_is_sent(site: Site) -> None:
    site.log("hello")
    await site.until(lambda: "hello" in site.cloud.lines)


async def test_log_that_could_not_be_sent_is_sent_when_the_cloud_answers_again(site: Site) -> None:
    site.cloud.faults = {"Log": CloudUnavailable("it is away")}
    site.log("kept")
    await site.until(lambda: site.cloud.calls["Log"])
    await site.clock.settle()
    site.cloud.faults.clear()
    before = site.clock.time()
    await site.tell(config="1", access="a")
    await site.until(lambda: "kept" in site.cloud.lines, step=0.01)
    assert site.clock.time() - before < 2.5  # the first pause is longer


async def test_spent_quota_is_waited_for(site: Site) -> None:
    site.cloud.faults = {"Log": RetryLater("too much", 200.0)}
    site.log("kept")
    await site.until(lambda: site.cloud.calls["Log"])
    site.cloud.faults.clear()
    await site.clock.advance(199)
    assert "kept" not in site.cloud.lines
    await site.until(lambda: "kept" in site.cloud.lines)


async def test_last_lines_are_sent_before_the_end(site: Site) -> None:
    await site.link.stop_following()
    site.log("stopping")
    await site.link.aclose()
    assert "stopping" in site.cloud.lines
    assert site.put is None
    assert site.cloud.is_closed


async def test_log_that_another_server_sends_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = Spool(tmp_path / LOG_DIRECTORY)
    site = Site(tmp_path, monkeypatch)
    await site.link.start()
    assert site.put is None
    assert "the log is not sent to the cloud" in caplog.text
    await site.link.fetch(1)
    assert site.keys == ["a"]
    await site.tell(config="2", access="a")
    await site.link.aclose()
    other.close()


async def test_closed_link_hears_nothing(site: Site) -> None:
    await site.link.fetch(1)
    await site.tell(config="1", access="b")
    await site.link.stop_following()
    asked = site.cloud.calls.copy()
    await site.clock.advance(600)
    assert (site.cloud.calls["GetAccess"], site.cloud.calls["NeedsRestart"]) == (
        *(asked["GetAccess"], asked["NeedsRestart"]),
    )

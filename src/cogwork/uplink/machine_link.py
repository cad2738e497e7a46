"""The connection of a machine to its cloud: configuration, certificate, log and restarts."""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import socket
import urllib.parse
import uuid
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError
from viam.gen.app.v1.robot_pb2 import AgentInfo, ConfigRequest, ConfigResponse, RobotConfig

from cogwork.auth.access_list import AccessList
from cogwork.config.schema.cloud import CloudConfig
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.clock_offset import describe_clock_offset
from cogwork.core.error_text import error_text
from cogwork.core.versions.named_version import NAMED_VERSION
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.logs.entry import Entry
from cogwork.logs.spool import SpoolInUse
from cogwork.uplink.access_link import AccessLink
from cogwork.uplink.certificate_link import CertificateLink
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import CloudUnavailable, CredentialsRefused
from cogwork.uplink.follow_link import FollowLink, News
from cogwork.uplink.joined_config import join_config
from cogwork.uplink.link_files import ACCESS_FILE, CERTIFICATE_FILE, LOG_DIRECTORY
from cogwork.uplink.log_link import LogLink, open_log_link
from cogwork.uplink.part_secret import read_current_cloud, store_secret
from cogwork.uplink.restart_link import RestartLink
from cogwork.wire.messages.follow_method import ACCESS_METADATA, HOST_METADATA, INSTANCE_METADATA

_CONFIG: Final = "/viam.app.v1.RobotService/Config"
_ACCESS_TIMEOUT: Final = 15.0
_RETRY: Final = RetryPolicy(first=1.0, maximum=30.0)
_SPREAD: Final = 0.5
"""Maximum random delay in seconds, so that not all machines fetch the access list at once."""

_log = logging.getLogger("rdk.config")


class LinkHost(Protocol):
    """The server's side of a link to the cloud."""

    def send_log_to(self, put: Callable[[Entry], None] | None) -> None:
        """Pass each log line to `put`, which must not block; None to stop."""

    def use_certificate(self, file: Path) -> None:
        """Serve TLS with the certificate and the key in this file."""

    def use_access(self, access: AccessList) -> None:
        """Let the listed clients log in, and end the sessions of all other clients."""

    def use_notices(self, notices: Sequence[str]) -> None:
        """Show problems with the connection to the cloud."""

    def restart(self, reason: str) -> None: ...


class MachineLink:
    def __init__(
        self,
        cloud: CloudConfig,
        directory: Path,
        host: LinkHost,
        clock: Clock,
        *,
        allow_plaintext: bool,
    ) -> None:
        """`directory` stores the files for this part of this cloud.

        Raise CloudUnavailable or ValueError if the address of the cloud cannot be used.
        """
        self._file_secret = cloud.secret
        self._cloud = cloud = read_current_cloud(directory, cloud)
        self._part = cloud.id
        self._directory = directory
        self._host = host
        self._clock = clock
        self._client = client = CloudClient(
            cloud.app_address,
            CloudLogin.from_config(cloud),
            allow_plaintext=allow_plaintext,
            metadata=(
                ACCESS_METADATA,
                (INSTANCE_METADATA, uuid.uuid4().hex),
                (HOST_METADATA, urllib.parse.quote(socket.gethostname())),
            ),
        )
        self._notices: dict[str, str] = {}
        self._follow = FollowLink(client, cloud.id, clock, self._on_news)
        self._access = AccessLink(directory / ACCESS_FILE, client, cloud.id, clock, host.use_access)
        self._refreshing: asyncio.Task[None] | None = None
        self._wanted_access = ""
        self._restart = RestartLink(client, cloud.id, clock, host.restart)
        self._certificate = CertificateLink(
            directory / CERTIFICATE_FILE, client, cloud.id, clock, host.use_certificate
        )
        self._log: LogLink | None = None
        self._revision = ""
        self._change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._following: list[asyncio.Task[None]] = []
        self._sending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._certificate.use_stored()
        await self._access.use_stored()
        try:
            self._log = await open_log_link(
                self._directory / LOG_DIRECTORY, self._client, self._part, self._clock
            )
        except SpoolInUse as error:
            _log.error("the log is not sent to the cloud: %s", error)
        else:
            self._host.send_log_to(self._log.put)
            self._sending = _create_task(self._log.run())
        self._following = [
            _create_task(work)
            for work in (self._follow.run(), self._restart.run(), self._access.run())
        ]

    @property
    def is_pushed(self) -> bool:
        return self._follow.is_listening

    @property
    def change(self) -> asyncio.Future[None]:
        return self._change

    async def ask_access(self) -> bool:
        """Fetch the access list because a client is not on it. Return whether it has changed."""
        return await self._access.ask()

    async def fetch(self, timeout: float) -> bytes:
        if self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        try:
            # Update the access list before the configuration: the listeners depend on whether
            # clients can log in.
            await self._access.refresh(timeout)
        except CredentialsRefused as error:
            self._show("login", str(error))
            # Clear the conflict: without a login, the cloud could not report that it has ended.
            self._show("conflict", "")
            raise
        self._show("login", "")
        self._notice("clock", describe_clock_offset(self._access.clock_offset) or "")
        request = ConfigRequest(id=self._part, agent_info=_describe_machine())
        reply = await self._client.call(_CONFIG, request, ConfigResponse, timeout)
        self._revision = reply.config.revision
        if not reply.config.cloud.signaling_insecure:
            await self._certificate.renew(reply.config.cloud.fqdn, timeout)
        return reply.config.SerializeToString(deterministic=True)

    def render(self, message: bytes, local: dict[str, Any]) -> str:
        try:
            current = {**local, "cloud": {**local["cloud"], **self._current_secret()}}
            return join_config(
                RobotConfig.FromString(message), current, has_access_list=self._access.is_known
            )
        except DecodeError as error:
            raise ValueError(str(error)) from None

    async def stop_following(self) -> None:
        await _cancel_tasks(
            [*self._following, *([self._refreshing] if self._refreshing is not None else [])]
        )
        await self._access.aclose()

    async def aclose(self) -> None:
        await self.stop_following()
        await _cancel_tasks([self._sending] if self._sending is not None else [])
        if self._log is not None:
            self._host.send_log_to(None)
            await self._log.aclose()
        await self._client.aclose()

    def _on_news(self, news: News) -> None:
        if news.ended:
            self._access.end(news.ended)
        if not news.config:
            return
        self._notice("conflict", news.conflict)
        if news.secret:
            self._replace_secret(news.secret)
        self._wanted_access = news.access
        if news.access != self._access.revision:
            self._refresh_access()
        if news.config != self._revision and not self._change.done():
            self._change.set_result(None)
        self._restart.ask_soon()
        if self._log is not None:
            self._log.retry_now()

    def _current_secret(self) -> dict[str, str]:
        return {"secret": self._cloud.secret} if self._cloud.secret != self._file_secret else {}

    def _replace_secret(self, secret: str) -> None:
        """Store a new secret, and log in with it from now on."""
        if secret == self._cloud.secret or self._cloud.api_key is not None:
            return
        try:
            # Blocking is acceptable: the secret changes about once a year.
            store_secret(self._directory, self._file_secret, secret)
        except OSError as error:
            _log.error(
                "cannot store the new secret of this machine: %s; keeping the former secret",
                error_text(error),
            )
            return
        _log.info("the cloud has replaced the secret of this machine")
        self._cloud = self._cloud.model_copy(update={"secret": secret})
        self._client.use_login(CloudLogin.from_config(self._cloud))
        self._follow.reconnect()
        if not self._change.done():
            self._change.set_result(None)

    def _notice(self, kind: str, sentence: str) -> None:
        """Log and show a problem; clear it if `sentence` is empty."""
        if self._show(kind, sentence) and sentence:
            _log.warning("%s", sentence)

    def _show(self, kind: str, sentence: str) -> bool:
        """Show a problem, or clear it if `sentence` is empty. Return whether it has changed."""
        if self._notices.get(kind, "") == sentence:
            return False
        self._notices[kind] = sentence
        self._host.use_notices([each for each in self._notices.values() if each])
        return True

    def _refresh_access(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = _create_task(self._get_access())

    async def _get_access(self) -> None:
        """Fetch the access list until it has the revision that the cloud has announced last."""
        backoff, got = Backoff(_RETRY), ""
        # Fetch once for each announced revision. If the list changes again, the cloud announces the
        # new revision, too.
        while self._wanted_access not in (self._access.revision, got):
            wanted = self._wanted_access
            # Delay the request: a change of an organization affects all of its machines at the same
            # time.
            await self._clock.sleep(random.uniform(_SPREAD / 10, _SPREAD))  # noqa: S311
            try:
                await self._access.refresh(_ACCESS_TIMEOUT)
            except CloudUnavailable as error:
                _log.debug("cannot get the access list from the cloud: %s", error)
                await self._clock.sleep(backoff.next_delay())
            else:
                backoff.reset()
                got = wanted


def _create_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work, name="cloud")
    task.add_done_callback(_report_failure)
    return task


async def _cancel_tasks(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical(
            "the connection to the cloud stopped working; restart the server", exc_info=error
        )


def _describe_machine() -> AgentInfo:
    return AgentInfo(
        host=socket.gethostname(),
        os=platform.system().lower(),
        version=NAMED_VERSION,
        platform=PLATFORM,
    )

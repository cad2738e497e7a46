"""Joins the machine to the cloud that its configuration file names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cogwork.config.check.key_shapes import name_section_keys
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.last_good import LastGood, last_good_for
from cogwork.config.source.sources import FileSource
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.substitution import substitute
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.logs.entry import Entry
from cogwork.serving.log import ServerLog
from cogwork.serving.shutdown import Shutdown
from cogwork.uplink.joined_source import CloudLink, JoinedSource
from cogwork.uplink.link_files import ACCESS_FILE, link_directory

if TYPE_CHECKING:
    from cogwork.auth.access_list import AccessList
    from cogwork.uplink.machine_link import MachineLink

_CLOUD_KEY: Final = '"app_address"'
"""Text that the configuration file contains if the machine joins a cloud."""

_log = logging.getLogger("rdk.networking")


class CloudMembership:
    """The machine's cloud: the source of its configuration, certificate and access list."""

    def __init__(
        self,
        config_file: Path,
        home: Path,
        environment: Mapping[str, str],
        log: ServerLog,
        shutdown: Shutdown,
        clock: Clock,
        *,
        allow_plaintext: bool,
        on_certificate: Callable[[], None],
        on_access: Callable[[AccessList], None],
    ) -> None:
        """Create a membership that is not connected.

        `on_certificate` is called when `certificate` has changed. `on_access` is called with each
        access list from the cloud.
        """
        self._home = home / "joined"
        self._config_file = config_file
        self._copy_name = last_good_for(home, config_file).path.name
        self._environment = environment
        self._log = log
        self._shutdown = shutdown
        self._clock = clock
        self._allow_plaintext = allow_plaintext
        self._on_certificate = on_certificate
        self._on_access = on_access
        self._link: MachineLink | None = None
        self.notices: tuple[str, ...] = ()
        """Problems with the connection to the cloud."""
        self.certificate: Path | None = None
        """File with the certificate and key from the cloud; None if the cloud has sent none."""
        self.source = JoinedSource(
            FileSource(config_file, clock),
            LastGood(self._home / self._copy_name),
            self._parse,
            self._connect,
            clock,
        )

    async def purge_logins(self, texts: Sequence[LastGood], history: ConfigHistory) -> None:
        """Remove cloud logins that older versions have stored in copies of the configuration."""
        try:
            await asyncio.to_thread(self._purge_logins, texts, history)
        except Exception as error:  # the server must start nevertheless
            _log.warning(
                "cannot remove cloud logins from older copies of the configuration: %s; retrying "
                "at the next start",
                error_text(error),
            )

    def _purge_logins(self, texts: Sequence[LastGood], history: ConfigHistory) -> None:
        try:
            text = self._config_file.read_text()
        except FileNotFoundError:
            return
        if _CLOUD_KEY not in text.lower() and not self._home.is_dir():
            return  # the machine has never joined a cloud
        from cogwork.uplink.stored_logins import PartAccess, StoredCopies, purge_logins

        own = self._parse(text)
        access = None
        if own.get("cloud"):
            cloud = CloudConfig.model_validate(own["cloud"])
            directory = link_directory(self._home.parent, cloud)
            access = PartAccess(cloud.id, directory / ACCESS_FILE)
        message = LastGood(self._home / self._copy_name)
        copies = StoredCopies(texts, history, message, self._home / f"{self._copy_name}.purged")
        purge_logins(copies, own, access, self._clock.time())

    async def aclose(self) -> None:
        """Leave the cloud after sending it the log."""
        await self.source.leave()

    def send_log_to(self, put: Callable[[Entry], None] | None) -> None:
        self._log.uplink = put

    def use_certificate(self, file: Path) -> None:
        self.certificate = file
        self._on_certificate()

    def use_notices(self, notices: Sequence[str]) -> None:
        self.notices = tuple(notices)

    def use_access(self, access: AccessList) -> None:
        self._on_access(access)

    @property
    def is_joined(self) -> bool:
        return self._link is not None

    async def ask_access(self) -> bool:
        """Update the access list from the cloud. Return whether it has changed."""
        return self._link is not None and await self._link.ask_access()

    def restart(self, reason: str) -> None:
        self._shutdown.restart(reason)

    def _parse(self, text: str) -> Any:
        try:
            found = read_json(substitute(text, self._environment).text).value
        except JsonSyntaxError as error:
            raise ValueError(error.message) from None
        return name_section_keys(found) if isinstance(found, dict) else found

    def _connect(self, cloud: CloudConfig) -> CloudLink:
        # Most machines have no cloud, and start faster without these imports.
        from cogwork.uplink.machine_link import MachineLink

        self._link = MachineLink(
            cloud,
            link_directory(self._home.parent, cloud),
            self,
            self._clock,
            allow_plaintext=self._allow_plaintext,
        )
        return self._link

"""Creates the authenticator for the login settings of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.config.schema.machine import MachineConfig
from cogwork.core.clock import Clock
from cogwork.robot.middleware.authentication import Authentication

if TYPE_CHECKING:
    from cogwork.auth.access_list import AccessList
    from cogwork.auth.signing_key import SigningKey


class ConfiguredLogin:
    """Keeps the login of a machine consistent with its configuration and its cloud."""

    def __init__(self, authentication: Authentication, home: Path, clock: Clock) -> None:
        self._authentication = authentication
        self._key_file = home / "auth" / "signing-key.pem"
        self._clock = clock
        self._limiter = AttemptLimiter(clock.monotonic)
        self._key: SigningKey | None = None
        self._access: AccessList | None = None
        self._config: MachineConfig | None = None

    def use_access(self, access: AccessList) -> None:
        """Apply the access list of the cloud. End the access of clients that it does not list."""
        self._access = access
        if self._config is not None:
            self.apply(self._config)

    def apply(self, config: MachineConfig) -> None:
        """Apply the login settings of a configuration. End the access of removed credentials."""
        self._config, access = config, self._access
        if access is not None and (config.cloud is None or config.cloud.id != access.part):
            access = None  # the list belongs to a cloud that the machine has left
        if not config.auth.is_configured and access is None:
            self._authentication.use(None, is_open=config.network.insecure_without_auth)
            return
        # Most machines on localhost have no login, and start faster without these imports.
        from cogwork.auth.authenticator import Authenticator
        from cogwork.auth.configured import audience_of, read_credentials, read_granted
        from cogwork.auth.signing_key import load_signing_key

        if self._key is None:
            self._key = load_signing_key(self._key_file)
        self._authentication.use(
            Authenticator(
                read_credentials(config, self._key),
                self._key,
                audience_of(config, self._key),
                self._limiter,
                self._clock,
                read_granted(config, access) if access is not None else None,
            )
        )

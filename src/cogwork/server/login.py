"""Makes the authenticator that a configuration asks for."""

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
    """Keeps the login of a machine in line with its configuration."""

    def __init__(self, authentication: Authentication, home: Path, clock: Clock) -> None:
        self._authentication = authentication
        self._key_file = home / "auth" / "signing-key.pem"
        self._clock = clock
        self._limiter = AttemptLimiter(clock.monotonic)
        self._key: SigningKey | None = None
        self._access: AccessList | None = None
        self._config: MachineConfig | None = None

    def use_access(self, access: AccessList) -> None:
        """Let those in who have access by the cloud; what is not listed ends at once."""
        self._access = access
        if self._config is not None:
            self.apply(self._config)

    def apply(self, config: MachineConfig) -> None:
        """Require the login that the configuration asks for; removed credentials end at once."""
        self._config, access = config, self._access
        if access is not None and (config.cloud is None or config.cloud.id != access.part):
            access = None  # of a cloud that the machine has left
        if not config.auth.is_configured and access is None:
            self._authentication.use(None, is_open=config.network.insecure_without_auth)
            return
        # Most machines on localhost have no login, and start without these.
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

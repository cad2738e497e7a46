"""The credentials with which a machine logs in to its cloud."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogwork.config.schema.cloud import CloudConfig

_API_KEY: Final = "api-key"


class CloudLogin(NamedTuple):
    """The credentials of a machine."""

    entity: str
    type: str
    secret: str

    @classmethod
    def from_config(cls, cloud: CloudConfig) -> CloudLogin:
        if cloud.api_key is not None:
            return cls(cloud.api_key.id, _API_KEY, cloud.api_key.key)
        return cls(cloud.id, "robot-secret", cloud.secret)

    @property
    def description(self) -> str:
        return f"the API key {self.entity}" if self._is_key else f"the secret of part {self.entity}"

    @property
    def advice(self) -> str:
        """What to do if the cloud refuses these credentials."""
        if self._is_key:
            return (
                "the key was deleted or replaced: write another one into cloud.api_key of its "
                "file, or let it join again"
            )
        return (
            "its secret was replaced, or it was deleted: write the new secret into the section "
            "cloud of its file, or let it join again"
        )

    @property
    def _is_key(self) -> bool:
        return self.type == _API_KEY

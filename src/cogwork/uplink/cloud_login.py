"""The credentials with which a machine logs in to its cloud."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.config.schema.cloud import CloudConfig


class CloudLogin(NamedTuple):
    """The credentials of a machine."""

    entity: str
    type: str
    secret: str

    @classmethod
    def from_config(cls, cloud: CloudConfig) -> CloudLogin:
        if cloud.api_key is not None:
            return cls(cloud.api_key.id, "api-key", cloud.api_key.key)
        return cls(cloud.id, "robot-secret", cloud.secret)

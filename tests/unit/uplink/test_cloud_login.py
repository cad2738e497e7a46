"""How a machine logs in: with its secret, or with a key if it has one."""

from __future__ import annotations

from cogwork.config.schema.cloud import ApiKey, CloudConfig
from cogwork.uplink.cloud_login import CloudLogin


def test_secret_or_key() -> None:
    cloud = CloudConfig(id="part", secret="s")
    assert CloudLogin.from_config(cloud) == ("part", "robot-secret", "s")
    keyed = cloud.model_copy(update={"api_key": ApiKey(id="k", key="v")})
    assert CloudLogin.from_config(keyed) == ("k", "api-key", "v")

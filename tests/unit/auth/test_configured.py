from __future__ import annotations

import pytest
from pydantic import ValidationError

from cogwork.auth.configured import read_credentials
from cogwork.auth.identity import CredentialType
from cogwork.config.schema.machine import MachineConfig
from cogwork.robot.motion.claims import describe_mover

from .parts import KEY


def test_key_is_shown_by_its_name() -> None:
    handler = {
        "type": "api-key",
        "config": {"keys": ["a", "b"], "a": "first", "b": "second"},
        "names": {"a": "laptop"},
    }
    config = MachineConfig.model_validate({"auth": {"handlers": [handler]}})
    credentials = read_credentials(config, KEY)
    named, unnamed = (
        credentials.check(key_id, CredentialType.API_KEY, KEY.digest(secret))
        for key_id, secret in (("a", "first"), ("b", "second"))
    )
    assert str(named) == 'api-key "laptop"'
    assert str(unnamed) == 'api-key "b"'
    assert describe_mover("ipv4:192.0.2.7:5000", named) == "laptop at 192.0.2.7"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"a": "laptop", "b": "laptop"}, "two keys the same name"),
        ({"a": "b"}, "the ID of another key"),
    ],
)
def test_name_that_does_not_identify_a_key_is_refused(names: dict[str, str], reason: str) -> None:
    """Otherwise, the log would blame another key for what its client did."""
    handler = {
        "type": "api-key",
        "config": {"keys": ["a", "b"], "a": "first", "b": "second"},
        "names": names,
    }
    with pytest.raises(ValidationError, match=reason):
        MachineConfig.model_validate({"auth": {"handlers": [handler]}})

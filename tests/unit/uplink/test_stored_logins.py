"""Logins of a cloud in what an older version has stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogwork.auth.access_list import PrincipalKind, parse_access_list
from cogwork.auth.granted_access import GrantedAccess
from cogwork.auth.roles import Role
from cogwork.config.config_history import ConfigHistory
from cogwork.config.last_good import LastGood
from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.resource.config_message import to_message  # noqa: E402
from cogwork.uplink.stored_logins import (  # noqa: E402
    StoredCopies,
    purge_logins,
    remove_logins,
)

CANARY = "canary-secret-of-the-organization"
PART = "part-1"
CONFIG: dict[str, Any] = {
    "cloud": {
        "id": PART,
        "secret": "own",
        "fqdn": "press.hall.fleet.test",
        "location_secret": CANARY,
        "location_secrets": [{"id": "s1", "secret": CANARY}],
    },
    "auth": {
        "handlers": [
            {"type": "api-key", "config": {"keys": ["k1", "k2"], "k1": CANARY, "k2": CANARY}}
        ],
        "tls_auth_entities": ["trusted"],
    },
    "components": [{"name": "scale"}],
}


@pytest.fixture
def copies(tmp_path: Path) -> StoredCopies:
    message = to_message(CONFIG)
    message.auth.handlers[0].config.update({"roles": {"k2": "operator"}})
    made = StoredCopies(
        [LastGood(tmp_path / "last-good.json"), LastGood(tmp_path / "settled.json")],
        ConfigHistory(tmp_path / "history"),
        LastGood(tmp_path / "joined.json"),
        tmp_path / "purged",
    )
    text = json.dumps(CONFIG, indent=2)
    made.texts[0].save(text)
    made.history.record(text, "1", 1.0)
    made.history.record(text.replace("scale", "belt"), "2", 2.0)
    made.message.save(json.dumps({"part": PART, "message": message.SerializeToString().hex()}))
    return made


def test_nothing_keeps_a_login_of_the_cloud(copies: StoredCopies, tmp_path: Path) -> None:
    assert purge_logins(copies, PART, tmp_path / "link" / "access.json", 100.0)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert CANARY.encode() not in content, file
            assert CANARY.encode().hex().encode() not in content, file
    kept = json.loads(copies.texts[0].read() or "")
    assert kept["components"] == CONFIG["components"]
    assert kept["cloud"]["secret"] == "own"
    assert kept["auth"] == {"tls_auth_entities": ["trusted"]}
    newest, oldest = copies.history.entries()
    assert ("belt" in newest.text, "scale" in oldest.text) == (True, True)
    assert not purge_logins(copies, PART, tmp_path / "link" / "access.json", 100.0)


def test_keys_still_work_without_the_cloud(copies: StoredCopies, tmp_path: Path) -> None:
    file = tmp_path / "link" / "access.json"
    purge_logins(copies, PART, file, 100.0)
    assert file.stat().st_mode & 0o777 == 0o600
    access = parse_access_list(file.read_bytes())
    assert {kind for kind, _ in access.entries} == set(PrincipalKind)
    granted = GrantedAccess(access)
    owner = granted.check("k1", "api-key", CANARY)
    operator = granted.check("k2", "api-key", CANARY)
    assert owner is not None
    assert operator is not None
    assert (owner.role, operator.role) == (Role.OWNER, Role.OPERATOR)
    assert granted.check("k1", "api-key", "other") is None


@pytest.mark.parametrize(
    "text",
    [
        "// not what the server writes\n{}",
        "[]",
        '{"auth": {"handlers": [{"type": "api-key"}]}}',
        '{"cloud": {"id": "p", "secret": "s"}, "auth": {"handlers": [1]}}',
    ],
)
def test_what_an_owner_wrote_stays(text: str) -> None:
    assert remove_logins(text) == text


def test_a_damaged_copy_is_tried_again(copies: StoredCopies, tmp_path: Path) -> None:
    copies.texts[1].path.write_text("damaged")
    with pytest.raises(Exception, match="checksum"):
        purge_logins(copies, PART, tmp_path / "link" / "access.json", 100.0)
    assert not copies.marker.exists()
    assert CANARY not in (copies.texts[0].read() or "")

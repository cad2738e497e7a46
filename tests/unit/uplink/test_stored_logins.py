"""Logins of a cloud in what an older version has stored."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cogwork.auth.access_list import (
    AccessList,
    PrincipalKind,
    encode_access_list,
    parse_access_list,
)
from cogwork.auth.granted_access import GrantedAccess
from cogwork.auth.roles import Role
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.last_good import LastGood
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.resource.messages.config_message import to_message  # noqa: E402
from cogwork.uplink.stored_logins import (  # noqa: E402
    PartAccess,
    StoredCopies,
    purge_logins,
    remove_logins,
)

CANARY = "canary-secret-of-the-organization"
PART = "part-1"
OWN: dict[str, Any] = {"cloud": {"id": PART, "secret": "own"}}
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
    save_message(made, {"k2": "operator"})
    return made


def save_message(copies: StoredCopies, roles: Any) -> None:
    """Store a message of the cloud as an older version does."""
    message = to_message(CONFIG)
    message.auth.handlers[0].config.update({"roles": roles})
    content = {"part": PART, "message": message.SerializeToString().hex()}
    copies.message.save(json.dumps(content))


def access_in(directory: Path) -> PartAccess:
    return PartAccess(PART, directory / "link" / "access.json")


def find_role(directory: Path, key: str) -> Role:
    """Return the role of a key according to the stored access list."""
    access = parse_access_list(access_in(directory).file.read_bytes())
    found = GrantedAccess(access).check(key, "api-key", CANARY)
    assert found is not None
    return found.role


def list_canaries(directory: Path) -> list[str]:
    """Return the files that have a login of the cloud."""
    canaries = (CANARY.encode(), CANARY.encode().hex().encode())
    return [
        file.name
        for file in directory.rglob("*")
        if file.is_file() and any(each in file.read_bytes() for each in canaries)
    ]


def test_nothing_keeps_a_login_of_the_cloud(copies: StoredCopies, tmp_path: Path) -> None:
    assert purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert list_canaries(tmp_path) == []
    kept = json.loads(copies.texts[0].read() or "")
    assert kept["components"] == CONFIG["components"]
    assert kept["cloud"]["secret"] == "own"
    assert kept["auth"] == {"tls_auth_entities": ["trusted"]}
    newest, oldest = copies.history.entries()
    assert ("belt" in newest.text, "scale" in oldest.text) == (True, True)
    assert not purge_logins(copies, OWN, access_in(tmp_path), 100.0)


def test_keys_still_work_without_the_cloud(copies: StoredCopies, tmp_path: Path) -> None:
    purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    file = access_in(tmp_path).file
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
    assert remove_logins(text, {}) == text


def test_a_damaged_copy_is_tried_again(copies: StoredCopies, tmp_path: Path) -> None:
    for damaged in (copies.texts[1], copies.message):
        damaged.path.write_text("damaged")
    with pytest.raises(Exception, match="checksum"):
        purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert not copies.marker.exists()
    assert list_canaries(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"message": 1}',
        '{"message": "zz"}',
        f'{{"message": "ff{CANARY.encode().hex()}"}}',
    ],
)
def test_a_message_that_cannot_be_decoded_is_removed(
    copies: StoredCopies, tmp_path: Path, text: str
) -> None:
    copies.message.save(text)
    assert purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert copies.message.read() is None
    assert list_canaries(tmp_path) == []


def test_copies_are_purged_without_a_message(copies: StoredCopies, tmp_path: Path) -> None:
    copies.message.path.unlink()
    assert purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert list_canaries(tmp_path) == []


def test_copies_are_purged_after_the_machine_has_left_its_cloud(
    copies: StoredCopies, tmp_path: Path
) -> None:
    assert purge_logins(copies, {}, None, 100.0)
    assert list_canaries(tmp_path) == []


@pytest.mark.parametrize("roles", ["operator", ["k1"], {"k1": ["owner"]}, {"k1": "unheard of"}])
def test_key_with_malformed_roles_has_the_lowest(
    copies: StoredCopies, tmp_path: Path, roles: Any
) -> None:
    save_message(copies, roles)
    assert purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert list_canaries(tmp_path) == []
    assert find_role(tmp_path, "k1") is Role.VIEWER


def test_logins_that_an_older_version_stores_again_are_removed(
    copies: StoredCopies, tmp_path: Path
) -> None:
    purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    for store in (
        partial(copies.texts[0].save, json.dumps(CONFIG)),
        partial(copies.history.record, json.dumps(CONFIG), "3", 3.0),
        partial(save_message, copies, {"k1": "operator"}),
    ):
        store()
        assert list_canaries(tmp_path) != []
        assert purge_logins(copies, OWN, access_in(tmp_path), 200.0)
        assert list_canaries(tmp_path) == []
    assert find_role(tmp_path, "k1") is Role.OPERATOR


def test_list_of_the_cloud_stays(copies: StoredCopies, tmp_path: Path) -> None:
    file = access_in(tmp_path).file
    file.parent.mkdir()
    file.write_text(encode_access_list(AccessList(PART, revision="7")))
    purge_logins(copies, OWN, access_in(tmp_path), 100.0)
    assert parse_access_list(file.read_bytes()).revision == "7"


def test_logins_of_the_own_file_stay() -> None:
    own, of_cloud = ({"type": "api-key", "config": {name: CANARY}} for name in ("own", "cloud"))
    text = json.dumps({"cloud": {"fqdn": "f"}, "auth": {"handlers": [of_cloud, own]}})
    own_file = {"auth": {"handlers": [own]}}
    purged = remove_logins(text, own_file)
    assert json.loads(purged)["auth"] == own_file["auth"]
    assert remove_logins(purged, own_file) == purged
    assert remove_logins(json.dumps(CONFIG), CONFIG) == json.dumps(CONFIG)


@pytest.mark.parametrize("handlers", [1, "text", {"a": 1}, [1, "text", None]])
def test_malformed_handlers_are_removed(handlers: Any) -> None:
    text = json.dumps({"cloud": {"fqdn": "f"}, "auth": {"handlers": handlers}})
    assert json.loads(remove_logins(text, {"auth": {"handlers": "text"}}))["auth"] == {}

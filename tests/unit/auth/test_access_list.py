"""The access list of a part: what it says, and for how long."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    encode_access_list,
    index_entries,
    parse_access_list,
)
from cogwork.auth.roles import Role

OWNER = AccessEntry(Principal(PrincipalKind.KEY, "k1", 2), Role.OWNER, b"\1" * 32)
VISITOR = AccessEntry(Principal(PrincipalKind.KEY, "k2"), Role.VIEWER, b"\2" * 32, until=100.0)
SECRET = AccessEntry(Principal(PrincipalKind.LOCATION, "s1"), Role.OWNER, b"\3" * 32)
ACCESS = AccessList(
    "part", index_entries([OWNER, VISITOR, SECRET]), {"keys": []}, "7", 10.0, 1000.0
)


def test_a_list_survives_its_text() -> None:
    assert parse_access_list(encode_access_list(ACCESS)) == ACCESS
    assert parse_access_list(encode_access_list(AccessList("part"))).fresh_until == math.inf


def test_a_replaced_secret_is_another_principal() -> None:
    assert ACCESS.find(Principal(PrincipalKind.KEY, "k1", 2)) is OWNER
    assert ACCESS.find(Principal(PrincipalKind.KEY, "k1", 1)) is None
    assert ACCESS.find(Principal(PrincipalKind.LOCATION, "k1", 2)) is None


def test_entries_end_and_the_list_does_unless_it_is_confirmed() -> None:
    assert ACCESS.at(99.0) is ACCESS
    assert set(ACCESS.at(100.0).entries) == {*ACCESS.entries} - {(PrincipalKind.KEY, "k2")}
    assert not ACCESS.at(1000.0).entries


def test_a_list_without_some_principals_is_another_revision() -> None:
    """So that the machine gets the current one."""
    assert ACCESS.without({"other"}) is ACCESS
    found = ACCESS.without({"k1", "s1"})
    assert [each.principal.id for each in found.entries.values()] == ["k2"]
    assert found.revision == ""


def test_kinds_and_roles_of_other_versions_grant_nothing() -> None:
    document = json.loads(encode_access_list(ACCESS))
    document["entries"] += [
        ["p", "person", "owner", 0, None, "00"],
        ["k3", "key", "admiral", 0, None, "00"],
        ["k4", "key", "viewer", 0, None, "00", "something new"],
    ]
    found = parse_access_list(json.dumps(document))
    assert {key for _, key in found.entries} == {"k1", "k2", "s1", "k4"}


@pytest.mark.parametrize(
    "changed",
    [
        {"entries": None},
        {"entries": [5]},
        {"entries": [["k"]]},
        {"entries": [["k", "key", "owner", "x", None, "00"]]},
        {"entries": [["k", "key", "owner", 0, None, "not hex"]]},
        {"jwks": 5},
        {"issued_at": "x"},
        {"part": ...},
    ],
)
def test_texts_that_are_no_list_are_refused(changed: dict[str, Any]) -> None:
    document = json.loads(encode_access_list(ACCESS)) | changed
    text = json.dumps({key: value for key, value in document.items() if value is not ...})
    with pytest.raises(ValueError, match="not an access list"):
        parse_access_list(text)


@pytest.mark.parametrize("text", ["", "5", "[]", "{", '"x"', "[" * 10_000])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an access list"):
        parse_access_list(text)

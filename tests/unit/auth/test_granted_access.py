"""Clients that the cloud lets use a machine: every way to prove who they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.auth.parts import ADDRESS, KEY, jwk, sign_externally

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    index_entries,
)
from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.auth.authenticator import Authenticator
from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.errors import NotListed, Unauthenticated
from cogwork.auth.granted_access import GrantedAccess, describe_principal
from cogwork.auth.identity import CredentialType
from cogwork.auth.roles import Role
from cogwork.auth.verifier import credential_digest, part_verifier
from cogwork.core.clock import ManualClock

PART, SECRET = "part-1", "s" * 43


def entry(
    principal: Principal, role: Role = Role.OWNER, secret: str = SECRET, part: str = PART
) -> AccessEntry:
    digest = credential_digest(secret)
    return AccessEntry(principal, role, part_verifier(digest, part, principal.id, principal.epoch))


KEY_1 = Principal(PrincipalKind.KEY, "k1", 3)
LOCATION = Principal(PrincipalKind.LOCATION, "s1")
ACCESS = AccessList(
    PART, index_entries([entry(KEY_1, Role.OPERATOR), entry(LOCATION)]), {"keys": [jwk()]}
)


def authenticator(access: AccessList | None = ACCESS) -> Authenticator:
    clock = ManualClock()
    granted = GrantedAccess(access, lambda name: name == "here") if access is not None else None
    return Authenticator(
        KnownCredentials(), KEY, PART, AttemptLimiter(clock.monotonic), clock, granted
    )


def without(principal: Principal) -> AccessList:
    return ACCESS.without({principal.id})


def token_of_cloud(principal: Principal, part: str = PART, role: str = "owner") -> str:
    claims = {
        "sub": principal.id,
        "aud": [part, "press.location.fleet.test"],
        "exp": 2_000_000_000,
        "rpc_auth_md": {"role": role, **describe_principal(principal)},
    }
    return f"Bearer {sign_externally(claims)}"


def test_a_key_logs_in_with_the_role_of_the_list() -> None:
    login = authenticator()
    identity = login.identify("Bearer " + login.log_in("k1", "api-key", SECRET, ADDRESS))
    assert (identity.entity, identity.role) == ("k1", Role.OPERATOR)
    assert login.is_valid(identity)


def test_a_login_does_not_look_at_every_entry_of_the_list() -> None:
    scans = 0

    class Entries(dict[tuple[PrincipalKind, str], AccessEntry]):
        def values(self) -> Any:
            nonlocal scans
            scans += 1
            return super().values()

    login = authenticator(replace(ACCESS, entries=Entries(ACCESS.entries)))
    before = scans
    login.log_in("k1", "api-key", SECRET, ADDRESS)
    assert scans == before


def test_a_location_secret_logs_in_as_a_name_of_the_machine() -> None:
    login = authenticator()
    kind = "robot-location-secret"
    identity = login.identify("Bearer " + login.log_in("here", kind, SECRET, ADDRESS))
    assert identity.role is Role.OWNER
    with pytest.raises(Unauthenticated):
        login.log_in("elsewhere", kind, SECRET, ADDRESS)


@pytest.mark.parametrize(
    ("entity", "secret"),
    [
        ("k1", "x" * 43),
        ("k2", SECRET),
        ("k1", credential_digest(SECRET).hex()),
        ("k1", ACCESS.entries[PrincipalKind.KEY, "k1"].verifier.hex()),
        ("", ""),
    ],
)
def test_other_secrets_digests_and_verifiers_do_not_log_in(entity: str, secret: str) -> None:
    with pytest.raises(Unauthenticated):
        authenticator().log_in(entity, "api-key", secret or "x", ADDRESS)


def test_the_verifier_of_another_part_does_not_accept_the_key() -> None:
    """The list of one machine is of no use on another."""
    moved = replace(ACCESS, part="part-2")
    with pytest.raises(Unauthenticated):
        authenticator(moved).log_in("k1", "api-key", SECRET, ADDRESS)


def test_a_token_of_the_cloud_has_the_role_of_the_list() -> None:
    identity = authenticator().identify(token_of_cloud(KEY_1))
    assert (identity.type, identity.role) == (CredentialType.EXTERNAL, Role.OPERATOR)


@pytest.mark.parametrize(
    "principal",
    [KEY_1._replace(id="k2"), KEY_1._replace(epoch=2), KEY_1._replace(kind=PrincipalKind.LOCATION)],
)
def test_a_token_of_a_principal_that_is_not_listed_is_refused(principal: Principal) -> None:
    with pytest.raises(NotListed):
        authenticator().identify(token_of_cloud(principal))


def test_a_principal_that_the_cloud_has_removed_is_refused_for_good() -> None:
    """The cloud is not asked about it again, so its client need not wait."""
    login = authenticator(without(KEY_1))
    with pytest.raises(Unauthenticated, match="was removed") as refused:
        login.identify(token_of_cloud(KEY_1))
    assert not isinstance(refused.value, NotListed)


def test_a_token_for_another_part_with_the_same_name_is_refused() -> None:
    with pytest.raises(Unauthenticated, match="another machine"):
        authenticator().identify(token_of_cloud(KEY_1, part="part-2"))


def test_the_list_decides_about_clients_that_the_cloud_introduces() -> None:
    login = authenticator()
    introduction = {"role": "owner", **describe_principal(KEY_1)}
    identity = login.introduce("k1", introduction)
    assert (identity.type, identity.role) == (CredentialType.SIGNALING, Role.OPERATOR)
    for other in ({}, {"role": "owner"}, {**introduction, "epoch": "4"}):
        with pytest.raises(NotListed):
            login.introduce("k1", other)


def test_without_a_list_the_signaling_server_decides() -> None:
    login = authenticator(None)
    identity = login.introduce("somebody", {"role": "viewer"})
    assert identity.role is Role.VIEWER
    assert login.is_valid(identity)
    assert not authenticator().is_valid(identity), "the machine has a list now"


@pytest.mark.parametrize(
    "changed",
    [
        without(KEY_1),
        replace(ACCESS, entries=index_entries([entry(KEY_1, Role.VIEWER)])),
        replace(ACCESS, entries=index_entries([entry(KEY_1._replace(epoch=4), Role.OPERATOR)])),
        replace(ACCESS, entries={}, jwks={}),
    ],
    ids=["removed", "lower role", "replaced", "not confirmed"],
)
def test_everything_of_a_principal_ends_with_its_access(changed: AccessList) -> None:
    login = authenticator()
    identities = [
        login.identify("Bearer " + login.log_in("k1", "api-key", SECRET, ADDRESS)),
        login.identify(token_of_cloud(KEY_1)),
        login.introduce("k1", describe_principal(KEY_1)),
    ]
    assert all(map(login.is_valid, identities))
    later = authenticator(changed)
    assert not any(map(later.is_valid, identities))


def test_a_higher_role_ends_nothing() -> None:
    login = authenticator()
    identity = login.introduce("k1", describe_principal(KEY_1))
    raised = replace(ACCESS, entries=index_entries([entry(KEY_1, Role.OWNER)]))
    assert authenticator(raised).is_valid(identity)

"""Claim codes: who creates them, how people type them, and when they end."""

from __future__ import annotations

import re

import pytest
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.errors import RoleTooLow, Unauthenticated
from cogwork.cloud.machine.claim_codes import create_code, redeem_code
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import ClaimCodeRow
from cogwork.core.errors import NotFound
from cogwork.wire.messages.claim_method import CLAIM_LIFETIME


def create(acme: OwnedOrganization, key: str = "") -> str:
    call = acme.cloud.make_call(key or acme.tenant.key)
    return acme.cloud.write(lambda tx: create_code(tx, call, acme.tenant.part))


def redeem(acme: OwnedOrganization, text: str) -> str:
    call = acme.cloud.make_call("")
    return acme.cloud.write(lambda tx: redeem_code(tx, call.keyring, text, call.now))


def test_code_leads_to_its_part_once(acme: OwnedOrganization) -> None:
    code = create(acme)
    assert re.fullmatch(r"[2-9A-Z]{4}-[2-9A-Z]{4}-[2-9A-Z]{4}", code)
    assert redeem(acme, code) == acme.tenant.part
    with pytest.raises(Unauthenticated, match="cogwork fleet claim"):
        redeem(acme, code)


def test_code_may_be_typed_in_any_way(acme: OwnedOrganization) -> None:
    code = create(acme)
    assert redeem(acme, f"  {code.replace('-', ' ').lower()} ") == acme.tenant.part


@pytest.mark.parametrize("text", ["", "-", "AAAA-AAAA-AAAA", "x" * 100_000, "%", "\0"])
def test_wrong_code_is_refused(acme: OwnedOrganization, text: str) -> None:
    create(acme)
    with pytest.raises(Unauthenticated):
        redeem(acme, text)


def test_code_ends_after_its_time(acme: OwnedOrganization) -> None:
    code, other = create(acme), create(acme)
    acme.cloud.advance(CLAIM_LIFETIME - 1)
    assert redeem(acme, code) == acme.tenant.part
    acme.cloud.advance(1)
    with pytest.raises(Unauthenticated):
        redeem(acme, other)


def test_oldest_code_of_a_part_ends_when_there_are_more_than_five(
    acme: OwnedOrganization,
) -> None:
    codes = []
    for _ in range(6):
        codes.append(create(acme))
        acme.cloud.advance(1)
    with pytest.raises(Unauthenticated):
        redeem(acme, codes[0])
    for code in codes[1:]:
        assert redeem(acme, code) == acme.tenant.part


def test_deleted_machine_cannot_be_claimed(acme: OwnedOrganization) -> None:
    code = create(acme)
    acme.run(pb.DeleteRobotRequest(id=acme.tenant.machine))
    with pytest.raises(Unauthenticated):
        redeem(acme, code)


def test_only_owners_create_codes(acme: OwnedOrganization) -> None:
    with pytest.raises(RoleTooLow):
        create(acme, acme.create(acme.grant("robot", "operator")).id)
    with pytest.raises(NotFound):
        create(acme, acme.cloud.add_tenant("Other").key)


def test_codes_are_not_stored(acme: OwnedOrganization) -> None:
    code = create(acme).replace("-", "")
    rows = acme.cloud.read(lambda tx: select(tx, ClaimCodeRow))
    assert all(code not in str(row) for row in rows)

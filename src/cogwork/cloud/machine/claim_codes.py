"""Claim codes, with which a machine gets its credentials without a copied file."""

from __future__ import annotations

import secrets
from typing import Final

from cogwork.auth.errors import Unauthenticated
from cogwork.cloud.fleet.parts import find_part
from cogwork.cloud.identity.access import CloudRole
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.operations.operation import Call
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values, select_one
from cogwork.cloud.storage.tables import ClaimCodeRow
from cogwork.wire.messages.claim_method import CLAIM_LIFETIME

_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Characters that are not easily confused."""
_LENGTH: Final = 12
"""Number of characters: 60 bits cannot be guessed, so no lockout is necessary."""
_GROUP: Final = 4
"""Number of characters between two dashes."""
_MAX_CODES: Final = 5
"""Maximum number of valid codes of one part. A further code replaces the oldest."""


def create_code(tx: Transaction, call: Call, part: str) -> str:
    """Create a code for a part of which the actor is an owner."""
    find_part(tx, call, part, CloudRole.OWNER)
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    tx.execute("DELETE FROM claim_code WHERE expires_at <= ?", call.now)
    expires_at = call.now + CLAIM_LIFETIME * 1_000_000
    insert(tx, ClaimCodeRow(call.keyring.digest(code), part, expires_at))
    digests = query_values(
        tx, str, "SELECT digest FROM claim_code WHERE part_id = ? ORDER BY expires_at DESC", part
    )
    for each in digests[_MAX_CODES:]:
        tx.execute("DELETE FROM claim_code WHERE digest = ?", each)
    return "-".join(code[at : at + _GROUP] for at in range(0, _LENGTH, _GROUP))


def redeem_code(tx: Transaction, keyring: Keyring, text: str, now: int) -> str:
    """Return the part of a code, and delete the code. Raise Unauthenticated."""
    part = find_claimed_part(tx, keyring, text, now)
    tx.execute("DELETE FROM claim_code WHERE digest = ?", keyring.digest(normalize_code(text)))
    return part


def find_claimed_part(tx: Transaction, keyring: Keyring, text: str, now: int) -> str:
    """Return the part of a code. Raise Unauthenticated."""
    digest = keyring.digest(normalize_code(text))
    code = select_one(
        tx,
        ClaimCodeRow,
        "JOIN part ON part.id = claim_code.part_id "
        "WHERE digest = ? AND expires_at > ? AND part.deleted_at IS NULL",
        *(digest, now),
    )
    if code is None:
        raise Unauthenticated(
            "the claim code is wrong, was used, or is older than 15 minutes; create another with: "
            "cogwork fleet claim PART"
        )
    return code.part_id


def normalize_code(text: str) -> str:
    """Return the code as it was created: in uppercase, without spaces and dashes."""
    return text[:64].upper().replace("-", "").replace(" ", "")

"""What a cloud and its machines store of a secret."""

from __future__ import annotations

import hashlib
import hmac

from cogwork.auth.verifier import credential_digest, part_verifier

PART, KEY = "part-1", "key-1"


def test_a_verifier_is_the_one_that_other_servers_compute() -> None:
    """Micro servers and clouds of other versions must agree on the bytes."""
    digest = hashlib.sha256(b"cogwork-credential-1\0secret").digest()
    message = b"cogwork-verifier-1\0part-1\0key-1\x003"
    assert credential_digest("secret") == digest
    assert part_verifier(digest, PART, KEY, 3) == hmac.digest(digest, message, "sha256")


def test_every_part_principal_and_epoch_has_a_verifier_of_its_own() -> None:
    digest = credential_digest("secret")
    found = {
        part_verifier(digest, PART, KEY, 0),
        part_verifier(digest, "part-2", KEY, 0),
        part_verifier(digest, PART, "key-2", 0),
        part_verifier(digest, PART, KEY, 1),
    }
    assert len(found) == 4

"""Digests with which a cloud and its machines recognize a credential without keeping it.

Credentials are random and have 256 bits, so a fast digest is as strong as a slow one. The digest of
the cloud is not a credential, and a verifier is one of a single part: neither works as a login, and
the verifier of one machine is useless on another. Only the standard library is used, because small
servers need no more.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

_DIGEST_DOMAIN: Final = b"cogwork-credential-1\0"
_VERIFIER_DOMAIN: Final = b"cogwork-verifier-1\0"


def credential_digest(secret: str) -> bytes:
    """Return what the cloud stores of a secret."""
    return hashlib.sha256(_DIGEST_DOMAIN + secret.encode(errors="surrogatepass")).digest()


def part_verifier(digest: bytes, part: str, principal: str, epoch: int) -> bytes:
    """Return what one part of a machine stores of a secret, given its digest.

    `epoch` is raised when a secret is replaced, so that tokens of the former one end.
    """
    salt = b"\0".join((part.encode(), principal.encode(), str(epoch).encode()))
    return hmac.digest(digest, _VERIFIER_DOMAIN + salt, "sha256")

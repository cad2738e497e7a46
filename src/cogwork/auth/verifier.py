"""Digests with which a cloud and its machines recognize a credential without storing it.

Credentials are random and have 256 bits, so a fast digest is as strong as a slow one. The cloud
stores a digest of a credential, and each part stores a verifier derived from it. Nobody can log in
with a digest or a verifier, and the verifier of one part is useless on another. This module imports
only the standard library, so that small servers can use it without other packages.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

_DIGEST_DOMAIN: Final = b"cogwork-credential-1\0"
_VERIFIER_DOMAIN: Final = b"cogwork-verifier-1\0"


def credential_digest(secret: str) -> bytes:
    """Return the digest of a secret that the cloud stores."""
    return hashlib.sha256(_DIGEST_DOMAIN + secret.encode(errors="surrogatepass")).digest()


def part_verifier(digest: bytes, part: str, principal: str, epoch: int) -> bytes:
    """Return the verifier of a secret for one part, derived from the digest in the cloud.

    `epoch` increases when a secret is replaced, so that tokens of the old secret end.
    """
    salt = b"\0".join((part.encode(), principal.encode(), str(epoch).encode()))
    return hmac.digest(digest, _VERIFIER_DOMAIN + salt, "sha256")

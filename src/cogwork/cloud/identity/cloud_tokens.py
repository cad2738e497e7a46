"""Tokens for calls to the cloud. Tokens of retired keys are still accepted."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cogwork.auth.errors import Unauthenticated
from cogwork.auth.tokens import Claims, TokenIssuer, read_key_id
from cogwork.cloud.keys.cloud_keys import CloudKeys

AUDIENCE: Final = "cogwork-cloud"
_MAX_TOKENS: Final = 20_000
"""Maximum number of verified tokens to cache."""


class CloudTokens:
    def __init__(self, keys: CloudKeys) -> None:
        self._keys = keys
        self._known = keys.token_keys
        # Cached without an expiry time: a token is valid until its key or its credentials are
        # removed. A change of the keys clears the cache, and the caller checks the credentials.
        self._verify_once = lru_cache(_MAX_TOKENS)(self._verify)

    def issue(self, entity: str, kind: str, fingerprint: str, issued_at: float) -> str:
        issuer = TokenIssuer(self._keys.token_key, AUDIENCE)
        return issuer.issue(entity, kind, fingerprint, issued_at)

    def verify(self, token: str) -> Claims:
        """Return the claims of a token. Raise Unauthenticated."""
        if self._known is not self._keys.token_keys:
            self._known = self._keys.token_keys
            self._verify_once.cache_clear()
        return self._verify_once(token)

    def _verify(self, token: str) -> Claims:
        key = self._keys.token_keys.get(read_key_id(token))
        if key is None:
            raise Unauthenticated(
                "unauthenticated: the token is signed with an unknown key; log in again"
            )
        return TokenIssuer(key, AUDIENCE).verify(token)

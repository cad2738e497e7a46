"""A machine that requires a login, and tokens of every kind for it."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.machine.watched import FAKES

from cogwork.auth.signing_key import SigningKey, load_signing_key

CANARY = "canary-4c1d"
KEYS = {role: str(uuid.uuid4()) for role in ("owner", "operator", "viewer", "revoked")}
"""IDs of API keys, by role."""
FQDN = "robot.example"


def key_of(role: str) -> str:
    return f"{CANARY}-{role}-key"


def config(*roles: str) -> dict[str, Any]:
    """Return a machine on which the keys of these roles may log in, and a location secret."""
    handlers: list[dict[str, Any]] = [
        {
            "type": "api-key",
            "config": {
                "keys": [KEYS[role] for role in roles],
                **{KEYS[role]: key_of(role) for role in roles},
            },
            "roles": {KEYS[role]: role for role in roles if role in ("operator", "viewer")},
        },
        {"type": "robot-location-secret", "config": {"secret": f"{CANARY}-location"}},
    ]
    return {**FAKES, "auth": {"handlers": handlers}, "network": {"fqdn": FQDN}}


def remote_auth(role: str, key: str) -> dict[str, Any]:
    """Return how a remote logs in with the ID of a role's key."""
    return {"entity": KEYS[role], "credentials": {"type": "api-key", "payload": key}}


ROLES = ("owner", "operator", "viewer")


def post(port: int, body: Mapping[str, Any], source: str = "127.0.0.1") -> tuple[int, str]:
    """Send a login from an address of this computer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60, source_address=(source, 0))
    try:
        connection.request("POST", "/rpc/v1/authenticate", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def log_in(port: int, role: str, key: str | None = None) -> str:
    """Return a token."""
    payload = key if key is not None else key_of(role)
    credentials = {"type": "api-key", "payload": payload}
    status, body = post(port, {"entity": KEYS[role], "credentials": credentials})
    assert status == 200, body
    token: str = json.loads(body)["accessToken"]
    return token


def _encode(part: Mapping[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


@dataclass
class Forger:
    """Makes tokens that a machine must refuse, with the machine's own key where that is needed."""

    key: SigningKey
    good: str
    """A valid token of the owner."""

    @classmethod
    def of_machine(cls, home: Path, good: str) -> Forger:
        return cls(load_signing_key(home / "auth" / "signing-key.pem"), good)

    def tokens(self) -> dict[str, str]:
        other = SigningKey(Ed25519PrivateKey.generate())
        claims = jwt.decode(self.good, options={"verify_signature": False})
        header, payload, _ = self.good.split(".")
        return {
            "garbage": "garbage",
            "expired": self._sign({**claims, "exp": 1}),
            "not yet valid": self._sign({**claims, "nbf": 4_000_000_000}),
            "alg none": f"{_encode({'alg': 'none', 'kid': self.key.id})}.{payload}.",
            "no signature": f"{header}.{payload}.",
            "wrong audience": self._sign({**claims, "aud": ["other.example"]}),
            "other machine": jwt.encode(claims, other.private, "EdDSA", {"kid": other.id}),
            "other machine with our key ID": jwt.encode(
                claims, other.private, "EdDSA", {"kid": self.key.id}
            ),
        }

    def _sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self.key.private, "EdDSA", {"kid": self.key.id})

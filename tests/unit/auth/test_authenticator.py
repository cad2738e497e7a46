from __future__ import annotations

import base64
import json
import logging
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from tests.unit.auth.parts import (
    ADDRESS,
    AUDIENCE,
    KEY,
    NAME,
    SECRETS,
    api_keys,
    external_keys,
    jwk,
    make_authenticator,
    sign_externally,
    stored,
)

from cogwork.auth.authenticator import Authenticator
from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.errors import InvalidLogin, TooManyAttempts, Unauthenticated
from cogwork.auth.identity import CredentialType
from cogwork.auth.roles import Role
from cogwork.auth.signing_key import SigningKey
from cogwork.core.clock import ManualClock


def log_in(authenticator: Authenticator, name: str = "owner") -> str:
    return "Bearer " + authenticator.log_in(name, "api-key", SECRETS[name], ADDRESS)


@pytest.mark.parametrize("name", SECRETS)
def test_api_key_logs_in_with_its_role(name: str) -> None:
    authenticator = make_authenticator()
    identity = authenticator.identify(log_in(authenticator, name))
    assert (identity.entity, identity.type) == (name, CredentialType.API_KEY)
    assert identity.role is Role[name.upper()]


def test_token_has_the_claims_of_the_public_protocol() -> None:
    clock = ManualClock()
    authenticator = make_authenticator(clock=clock)
    token = authenticator.log_in("owner", "api-key", SECRETS["owner"], ADDRESS)
    assert jwt.get_unverified_header(token) == {"alg": "EdDSA", "typ": "JWT", "kid": KEY.id}
    claims = jwt.decode(token, KEY.public, ["EdDSA"], audience=AUDIENCE)
    assert claims["sub"] == "owner"
    assert claims["aud"] == [AUDIENCE]
    assert claims["iss"] == AUDIENCE
    assert claims["iat"] == int(clock.time())
    assert claims["rpc_creds_type"] == "api-key"
    assert len(claims["jti"]) == 36
    assert "exp" not in claims
    assert SECRETS["owner"] not in json.dumps(claims)


async def test_token_with_a_lifetime_expires() -> None:
    clock = ManualClock()
    authenticator = make_authenticator(clock=clock)
    token = authenticator.log_in("owner", "api-key", SECRETS["owner"], ADDRESS, lifetime=60)
    identity = authenticator.identify(f"Bearer {token}")
    assert identity.valid_until == int(clock.time()) + 60
    await clock.advance(61)
    with pytest.raises(Unauthenticated, match="the token has expired; log in again"):
        authenticator.identify(f"Bearer {token}")


def test_location_secret_logs_in_as_a_name_of_the_machine() -> None:
    credentials = KnownCredentials(
        location_secrets=[stored("old"), stored("new")], is_own_name=lambda name: name == "here"
    )
    authenticator = make_authenticator(credentials)
    for secret in ("old", "new"):
        token = authenticator.log_in("here", "robot-location-secret", secret, ADDRESS)
        assert authenticator.identify(f"Bearer {token}").role is Role.OWNER
    with pytest.raises(Unauthenticated, match="invalid credentials"):
        authenticator.log_in("elsewhere", "robot-location-secret", "old", ADDRESS)


@pytest.mark.parametrize(
    ("entity", "kind", "payload", "error"),
    [
        ("owner", "", "", "credentials required"),
        ("owner", "robot-secret", "x", 'do not know how to handle credential type "robot-secret"'),
        ("owner", "robot-location-secret", "x", "do not know how to handle"),
        ("owner", "external", "x", "do not know how to handle"),
        ("owner", "certificate", "x", "do not know how to handle"),
        ("owner", "x" * 5000, "x", 'type "' + "x" * 64 + '..."'),
    ],
)
def test_incomplete_login_is_explained(entity: str, kind: str, payload: str, error: str) -> None:
    with pytest.raises(InvalidLogin, match=error):
        make_authenticator().log_in(entity, kind, payload, ADDRESS)


@pytest.mark.parametrize(
    ("entity", "payload"),
    [
        ("owner", "wrong"),
        ("owner", ""),
        ("nobody", SECRETS["owner"]),
        ("", ""),
        ("owner", "\ud800"),
    ],
)
def test_wrong_credentials_are_refused(
    entity: str, payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(Unauthenticated) as refusal:
        make_authenticator().log_in(entity, "api-key", payload, ADDRESS)
    assert str(refusal.value) == "invalid credentials"
    assert f'as "{entity}" from {ADDRESS} failed' in caplog.text
    assert SECRETS["owner"] not in caplog.text


def test_short_key_is_not_checked_after_too_many_guesses() -> None:
    authenticator = make_authenticator()
    for _ in range(10):
        with pytest.raises(Unauthenticated):
            authenticator.log_in("owner", "api-key", "wrong", ADDRESS)
    with pytest.raises(TooManyAttempts):
        authenticator.log_in("owner", "api-key", SECRETS["owner"], ADDRESS)


def test_generated_key_is_accepted_however_many_logins_have_failed() -> None:
    generated = "v4x3nGQ1u9vM2oYtKpLr7wZs"
    authenticator = make_authenticator(KnownCredentials({**api_keys(), "phone": stored(generated)}))
    for number in range(10_000):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            authenticator.log_in(("phone", "owner", "x")[number % 3], "api-key", "wrong", ADDRESS)
    assert authenticator.log_in("phone", "api-key", generated, ADDRESS)


def test_removed_replaced_or_demoted_key_ends_its_tokens() -> None:
    before = make_authenticator()
    header = log_in(before)
    identity = before.identify(header)
    keys = api_keys()
    del keys["owner"]
    demoted = {**keys, "owner": stored(SECRETS["owner"], Role.VIEWER)}
    for changed in (keys, {**keys, "owner": stored("another")}):
        after = make_authenticator(KnownCredentials(changed))
        assert not after.is_valid(identity)
        with pytest.raises(Unauthenticated, match="were removed"):
            after.identify(header)
    after = make_authenticator(KnownCredentials(demoted))
    assert not after.is_valid(identity)
    assert after.identify(header).role is Role.VIEWER
    assert make_authenticator().is_valid(identity)


def forge(**changes: Any) -> str:
    """Return a token that is signed like ours, with other claims."""
    claims = {
        "sub": "owner",
        "aud": [AUDIENCE],
        "rpc_creds_type": "api-key",
        "rpc_auth_md": {"fingerprint": stored(SECRETS["owner"]).fingerprint},
        **changes,
    }
    present = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(present, KEY.private, "EdDSA", {"kid": KEY.id})


def without_signature(algorithm: str) -> str:
    def encode(part: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    header = {"alg": algorithm, "typ": "JWT", "kid": KEY.id}
    return f"{encode(header)}.{encode({'sub': 'owner', 'aud': [AUDIENCE]})}."


OTHER_MACHINE = SigningKey(ed25519.Ed25519PrivateKey.generate())
BAD_TOKENS = {
    "empty": ("", "unauthenticated: "),
    "garbage": ("garbage", "unauthenticated: "),
    "three parts": ("a.b.c", "unauthenticated: "),
    "no signature": (without_signature("none"), "unauthenticated: "),
    "no signature, EdDSA": (without_signature("EdDSA"), "unauthenticated: "),
    "HMAC with the public key": (
        jwt.encode({"sub": "owner", "aud": [AUDIENCE]}, KEY.id, "HS256", {"kid": KEY.id}),
        "unauthenticated: ",
    ),
    "another machine": (
        jwt.encode({"sub": "owner"}, OTHER_MACHINE.private, "EdDSA", {"kid": OTHER_MACHINE.id}),
        "signed with an unknown key",
    ),
    "another machine, our ID": (
        jwt.encode({"sub": "owner"}, OTHER_MACHINE.private, "EdDSA", {"kid": KEY.id}),
        "unauthenticated: signature verification failed",
    ),
    "another audience": (forge(aud=["elsewhere"]), "invalid audience"),
    "no audience": (forge(aud=None), "unauthenticated: "),
    "no subject": (forge(sub=None), "expected entity"),
    "expired": (forge(exp=1), "unauthenticated: the token has expired"),
    "not valid yet": (forge(nbf=4_000_000_000), "is not valid yet"),
    "time that is text": (forge(exp="tomorrow"), "exp is not a number"),
    "unknown type": (forge(rpc_creds_type="certificate"), "were removed"),
    "another secret": (forge(rpc_auth_md={"fingerprint": "0"}), "were removed"),
    "no metadata": (forge(rpc_auth_md=["x"]), "were removed"),
    "too long": ("x" * 10_000, "too long"),
    "not ASCII": ("ä.ö.ü", "unauthenticated: "),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_bad_token_is_refused(name: str) -> None:
    token, error = BAD_TOKENS[name]
    with pytest.raises(Unauthenticated, match=error):
        make_authenticator().identify(f"Bearer {token}")


def test_forged_token_would_be_accepted_if_it_were_right() -> None:
    assert make_authenticator().identify(f"Bearer {forge()}").entity == "owner"


@pytest.mark.parametrize("header", ["", "Basic abc", "bearer x", "Bearer"])
def test_other_authorization_is_refused(header: str) -> None:
    with pytest.raises(Unauthenticated, match="expected authorization header with prefix: Bearer "):
        make_authenticator().identify(header)


CLAIMS = {"sub": "alice@example.com", "aud": [AUDIENCE], "rpc_creds_type": "external"}


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
def test_token_of_the_external_issuer_is_accepted(algorithm: str) -> None:
    authenticator = make_authenticator(KnownCredentials(external=external_keys()))
    token = sign_externally(CLAIMS, algorithm=algorithm)
    identity = authenticator.identify(f"Bearer {token}")
    assert (identity.entity, identity.type) == ("alice@example.com", CredentialType.EXTERNAL)
    assert identity.role is Role.OWNER
    assert authenticator.is_valid(identity)


@pytest.mark.parametrize(
    ("metadata", "role"),
    [({"role": "viewer"}, Role.VIEWER), ({"role": "Operator"}, Role.OPERATOR), ({}, Role.OWNER)],
)
def test_external_issuer_grants_roles(metadata: dict[str, str], role: Role) -> None:
    authenticator = make_authenticator(KnownCredentials(external=external_keys()))
    token = sign_externally({**CLAIMS, "rpc_auth_md": metadata})
    assert authenticator.identify(f"Bearer {token}").role is role


def test_unknown_role_of_the_external_issuer_is_the_lowest() -> None:
    authenticator = make_authenticator(KnownCredentials(external=external_keys()))
    token = sign_externally({**CLAIMS, "rpc_auth_md": {"role": "janitor"}})
    assert authenticator.identify(f"Bearer {token}").role is Role.VIEWER


async def test_external_token_ends_with_its_expiry_and_with_its_key() -> None:
    clock = ManualClock()
    authenticator = make_authenticator(KnownCredentials(external=external_keys()), clock)
    token = sign_externally({**CLAIMS, "exp": clock.time() + 60})
    identity = authenticator.identify(f"Bearer {token}")
    await clock.advance(60)
    with pytest.raises(Unauthenticated, match="has expired"):
        authenticator.identify(f"Bearer {token}")
    other = rsa.generate_private_key(65537, 2048)
    replaced = make_authenticator(KnownCredentials(external=external_keys(jwk(key=other))))
    assert not replaced.is_valid(identity)
    assert not make_authenticator().is_valid(identity)


@pytest.mark.parametrize("audience", [AUDIENCE, NAME, [NAME], [AUDIENCE, NAME], [AUDIENCE, "old"]])
def test_external_token_names_the_machine_by_its_id_or_by_its_name_alone(audience: Any) -> None:
    authenticator = make_authenticator(KnownCredentials(external=external_keys()))
    token = sign_externally({**CLAIMS, "aud": audience})
    assert authenticator.identify(f"Bearer {token}").entity == CLAIMS["sub"]


@pytest.mark.parametrize(
    ("claims", "key_id", "error"),
    [
        ({**CLAIMS, "aud": ["elsewhere"]}, "issuer", "invalid audience"),
        ({**CLAIMS, "aud": ["elsewhere", NAME]}, "issuer", "invalid audience"),
        ({**CLAIMS, "aud": [""]}, "issuer", "invalid audience"),
        (CLAIMS, "unknown", "signed with an unknown key"),
        ({**CLAIMS, "sub": 7}, "issuer", "unauthenticated|expected entity"),
        ({**CLAIMS, "exp": 1}, "issuer", "has expired"),
    ],
)
def test_other_external_token_is_refused(claims: dict[str, Any], key_id: str, error: str) -> None:
    authenticator = make_authenticator(KnownCredentials(external=external_keys()))
    with pytest.raises(Unauthenticated, match=error):
        authenticator.identify("Bearer " + sign_externally(claims, key_id=key_id))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ({"kty": "RSA"}, 'has no "kid"'),
        ({"kid": "a", "kty": "EC"}, "is not an RSA key"),
        ({"kid": "a", "kty": "RSA", "n": "!", "e": "AQAB"}, "is not valid"),
        (jwk(key=rsa.generate_private_key(65537, 1024)), "shorter than 2048 bits"),
    ],
)
def test_unusable_key_of_an_issuer_is_explained(key: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        external_keys(key)

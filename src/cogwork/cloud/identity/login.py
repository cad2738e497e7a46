"""Logs actors in to the cloud, and identifies them by their tokens afterwards."""

from __future__ import annotations

import hashlib
import hmac
import logging
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.auth.errors import InvalidLogin, Unauthenticated
from cogwork.auth.refusal_delay import RefusalDelay
from cogwork.auth.signing_key import SigningKey
from cogwork.auth.tokens import FINGERPRINT, TokenIssuer
from cogwork.cloud.context import CloudContext
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login_admission import LoginAdmission
from cogwork.cloud.public_name import location_of
from cogwork.cloud.storage.records import Transaction
from cogwork.wire.handlers import Method, Stream

AUDIENCE: Final = "cogwork-cloud"

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_BEARER: Final = "Bearer "
_NO_DIGEST: Final = "0" * 64
"""Compared for an unknown actor, so that refusing one takes as long as refusing another."""
_MAX_ENTITY: Final = 256
_MAX_TOKENS: Final = 20_000
"""Verified tokens that are remembered."""
_OWNER_TYPES: Final = {ActorType.PART: "part", ActorType.LOCATION: "location"}

_log = logging.getLogger("cloud.login")


class _StoredSecret(NamedTuple):
    actor: Actor
    """Who logs in with it."""
    digest: str

    @property
    def fingerprint(self) -> str:
        """Identify the secret in a token, so that the token ends with it."""
        return hashlib.sha256(self.digest.encode()).hexdigest()[:16]


class Login:
    def __init__(self, context: CloudContext, key: SigningKey) -> None:
        self._context = context
        self._issuer = TokenIssuer(key, AUDIENCE)
        # A token stays valid as long as its credentials, which `identify` looks up.
        self._verify = lru_cache(_MAX_TOKENS)(self._issuer.verify)
        self._limiter = AttemptLimiter(context.clock.monotonic)
        self._admission = LoginAdmission(context.clock)
        self._refusals = RefusalDelay(context.clock)

    async def log_in(self, entity: str, kind: str, payload: str, address: str) -> str:
        """Return a token for valid credentials. `address` is where the actor is."""
        found = await self._check(entity, kind, payload, address)
        return self._issuer.issue(entity, kind, found.fingerprint, self._context.clock.time())

    async def verify(self, entity: str, kind: str, payload: str, address: str) -> Actor:
        """Return the actor with these credentials."""
        return (await self._check(entity, kind, payload, address)).actor

    async def _check(self, entity: str, kind: str, payload: str, address: str) -> _StoredSecret:
        if kind not in tuple(ActorType):
            raise InvalidLogin(
                f'do not know how to handle credential type "{kind[:64]}"; use an API key'
            )
        if len(entity) > _MAX_ENTITY:
            raise InvalidLogin(f"the entity has more than {_MAX_ENTITY} characters")
        actor = _find_actor(entity, kind)
        async with self._refusals.apply():
            return await self._verify_secret(actor, payload, address)

    async def _verify_secret(self, actor: Actor, payload: str, address: str) -> _StoredSecret:
        """Check the secret of an actor. All are generated, so a correct one is always accepted."""
        async with self._admission.slot(address):
            stored = await self._context.records.read(lambda tx: _read_secrets(tx, actor))
        digest = self._context.keyring.digest(payload)
        matching = [
            each
            for each in stored or [_StoredSecret(actor, _NO_DIGEST)]
            if hmac.compare_digest(each.digest, digest)
        ]
        if not matching or not stored:
            if stored and actor.type is ActorType.PART:
                self._context.watch.note_refusal(actor.id, address)
            self._limiter.record_failure(address, str(actor))
            _log.warning("login of %s from %s failed: invalid credentials", actor, address)
            raise Unauthenticated("invalid credentials")
        self._limiter.record_success(address, str(actor))
        if actor.type is ActorType.PART:
            self._context.watch.note_login(actor.id, address)
        return matching[0]

    def check_call(self, method: Method, stream: Stream) -> None:
        """Raise Unauthenticated if a call has no valid token, before its request is read."""
        if method.path != _AUTHENTICATE:
            self._verify(_read_token(stream))

    async def identify(self, stream: Stream) -> Actor:
        """Return who sent a call."""
        token = _read_token(stream)
        if (known := self._context.actors.find(token)) is not None:
            self._context.calls.assign(known)
            return known
        claims = self._verify(token)
        actor = _find_actor(claims.entity, claims.type)
        lookup = self._context.actors.begin(token)
        stored = await self._context.records.read(lambda tx: _read_secrets(tx, actor))
        used = claims.metadata.get(FINGERPRINT, "")
        found = next((each.actor for each in stored if each.fingerprint == used), None)
        if found is None:
            raise Unauthenticated("unauthenticated: the credentials of this token were removed")
        self._context.actors.add(lookup, found)
        self._context.calls.assign(found)
        return found


def _find_actor(entity: str, kind: str) -> Actor:
    """Return who an entity is. Clients that use a location's secret name a machine there."""
    found = ActorType(kind)
    return Actor(found, location_of(entity.lower()) if found is ActorType.LOCATION else entity)


def _read_token(stream: Stream) -> str:
    authorizations = [value for key, value in stream.metadata.items() if key == "authorization"]
    if len(authorizations) != 1 or not isinstance(authorizations[0], str):
        raise Unauthenticated("authentication required")
    if not authorizations[0].startswith(_BEARER):
        raise Unauthenticated(f"expected authorization header with prefix: {_BEARER}")
    return authorizations[0].removeprefix(_BEARER)


def _read_secrets(tx: Transaction, actor: Actor) -> list[_StoredSecret]:
    """Return the secrets with which an actor may log in."""
    if actor.type is ActorType.API_KEY:
        rows = tx.query("SELECT digest, epoch FROM api_key WHERE id = ?", actor.id)
        return [
            _StoredSecret(replace(actor, epoch=int(row["epoch"])), row["digest"]) for row in rows
        ]
    rows = tx.query(
        "SELECT id, digest FROM secret WHERE owner_type = ? AND owner_id = ?",
        *(_OWNER_TYPES[actor.type], actor.id),
    )
    return [_StoredSecret(replace(actor, secret_id=row["id"]), row["digest"]) for row in rows]

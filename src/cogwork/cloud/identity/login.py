"""Logs actors in to the cloud, and identifies them by their tokens."""

from __future__ import annotations

import hmac
import logging
from dataclasses import replace
from typing import Final, NamedTuple

from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.auth.errors import InvalidLogin, Unauthenticated
from cogwork.auth.refusal_delay import RefusalDelay
from cogwork.auth.tokens import FINGERPRINT
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.actor_cache import ActorCache
from cogwork.cloud.identity.cloud_record import read_cloud
from cogwork.cloud.identity.cloud_tokens import CloudTokens
from cogwork.cloud.identity.login_admission import LoginAdmission
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.cloud.identity.part_watch import PartWatch
from cogwork.cloud.identity.public_name import location_of
from cogwork.cloud.identity.token_fingerprint import fingerprint_of
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.storage.records import Records, RecordsUnavailable, Transaction
from cogwork.cloud.storage.select import first, query
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.wire.table.handlers import Method, Stream

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_BEARER: Final = "Bearer "
_NO_DIGEST: Final = "0" * 64
"""Checked if the actor is unknown, so that the response time does not reveal which actors exist."""
_MAX_ENTITY: Final = 256
_LOOKUPS: Final = 5
"""Maximum number of attempts to read an actor while credentials are being removed."""
_OWNER_TYPES: Final = {ActorType.PART: "part", ActorType.LOCATION: "location"}

_log = logging.getLogger("cloud.login")


class UnknownPart(CogworkError):
    """The records do not have a part, or may have lost its secret.

    This error asks the part to try again. A refusal would make small servers erase their
    credentials, so only a login that is certainly wrong is refused.
    """

    status = "UNAVAILABLE"


class _StoredSecret(NamedTuple):
    actor: Actor
    """The actor that logs in with the secret."""
    digest: str
    former_fingerprint: str | None = None
    """The fingerprint in tokens of version 0.1, which computed another digest."""

    @property
    def fingerprint(self) -> str:
        """A digest that ties tokens to the secret, so that they end with it."""
        return fingerprint_of(self.digest)


class ActorLogin:
    def __init__(
        self,
        records: Records,
        keys: CloudKeys,
        clock: Clock,
        watch: PartWatch,
        actors: ActorCache,
        calls: OpenCalls,
    ) -> None:
        self._records = records
        self._clock = clock
        self._watch = watch
        self._actors = actors
        self._calls = calls
        self._tokens = CloudTokens(keys)
        self._keyring = Keyring(keys)
        self._limiter = AttemptLimiter(clock.monotonic)
        self._admission = LoginAdmission(clock)
        self._refusals = RefusalDelay(clock)

    async def log_in(self, entity: str, kind: str, payload: str, address: str) -> str:
        """Return a token for valid credentials. `address` is the actor's address."""
        found = await self._check(entity, kind, payload, address)
        return self._tokens.issue(entity, kind, found.fingerprint, self._clock.time())

    async def verify(self, entity: str, kind: str, payload: str, address: str) -> Actor:
        """Return the actor with these credentials. Raise Unauthenticated."""
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
        """Check the secret of an actor. Accept a correct one after any number of failures."""
        async with self._admission.slot(address):
            stored = await self._records.read(lambda tx: _read_secrets(tx, actor))
        digest = self._keyring.digest(payload)
        matching = [
            each
            for each in stored or [_StoredSecret(actor, _NO_DIGEST)]
            if hmac.compare_digest(each.digest, digest)
        ]
        if not matching or not stored:
            if stored and actor.type is ActorType.PART:
                self._watch.note_refusal(actor.id, address)
            self._limiter.record_failure(address, str(actor))
            _log.warning("login of %s from %s failed: invalid credentials", actor, address)
            now = int(self._clock.time() * 1e6)
            async with self._admission.slot(address):
                await self._records.read(lambda tx: _require_proof(tx, actor, now))
            raise Unauthenticated("invalid credentials")
        self._limiter.record_success(address, str(actor))
        if actor.type is ActorType.PART:
            self._watch.note_login(actor.id, address)
        return matching[0]

    def check_call(self, method: Method, stream: Stream) -> None:
        """Raise Unauthenticated if a call has no valid token, before its request is read."""
        if method.path != _AUTHENTICATE:
            self._tokens.verify(_read_token(stream))

    async def identify(self, stream: Stream) -> Actor:
        """Return the actor of a call. Raise Unauthenticated."""
        token = _read_token(stream)
        if (known := self._actors.find(token)) is not None:
            self._calls.assign(known)
            return known
        claims = self._tokens.verify(token)
        actor = _find_actor(claims.entity, claims.type)
        used = claims.metadata.get(FINGERPRINT, "")

        def find(tx: Transaction) -> Actor | None:
            _require_known_part(tx, actor)
            matching = (
                each.actor
                for each in _read_secrets(tx, actor)
                if used in (each.fingerprint, each.former_fingerprint)
            )
            return next(matching, None)

        for _ in range(_LOOKUPS):
            lookup = self._actors.begin(token)
            found = await self._records.read(find)
            if found is None:
                raise Unauthenticated("unauthenticated: the credentials of this token were removed")
            if self._actors.add(lookup, found):
                self._calls.assign(found)
                return found
        raise RecordsUnavailable(
            "cannot read the credentials while other credentials are being removed; try again"
        )


def _find_actor(entity: str, kind: str) -> Actor:
    """Return the actor for an entity. With a location secret, the entity is a machine's name."""
    found = ActorType(kind)
    return Actor(found, location_of(entity.lower()) if found is ActorType.LOCATION else entity)


def _read_token(stream: Stream) -> str:
    authorizations = [value for key, value in stream.metadata.items() if key == "authorization"]
    if len(authorizations) != 1 or not isinstance(authorizations[0], str):
        raise Unauthenticated("authentication required")
    if not authorizations[0].startswith(_BEARER):
        raise Unauthenticated(f"expected authorization header with prefix: {_BEARER}")
    return authorizations[0].removeprefix(_BEARER)


class _KeyDigest(NamedTuple):
    digest: str
    epoch: int
    fingerprint: str | None


class _SecretDigest(NamedTuple):
    id: str
    digest: str
    fingerprint: str | None


class _KnownPart(NamedTuple):
    deleted_at: int | None


def _read_secrets(tx: Transaction, actor: Actor) -> list[_StoredSecret]:
    """Return the secrets that an actor may use to log in."""
    if actor.type is ActorType.API_KEY:
        keys = query(
            tx,
            _KeyDigest,
            "SELECT api_key.digest, epoch, fingerprint FROM api_key LEFT JOIN former_fingerprint "
            "ON former_fingerprint.digest = api_key.digest WHERE id = ?",
            actor.id,
        )
        return [
            _StoredSecret(replace(actor, epoch=key.epoch), key.digest, key.fingerprint)
            for key in keys
        ]
    secrets = query(
        tx,
        _SecretDigest,
        "SELECT id, secret.digest, fingerprint FROM secret LEFT JOIN former_fingerprint "
        "ON former_fingerprint.digest = secret.digest WHERE owner_type = ? AND owner_id = ?",
        *(_OWNER_TYPES[actor.type], actor.id),
    )
    return [
        _StoredSecret(replace(actor, secret_id=secret.id), secret.digest, secret.fingerprint)
        for secret in secrets
    ]


def _require_known_part(tx: Transaction, actor: Actor) -> None:
    """Raise UnknownPart if the records do not have the part, or lack all of its secrets."""
    if actor.type is not ActorType.PART:
        return
    part = first(query(tx, _KnownPart, "SELECT deleted_at FROM part WHERE id = ?", actor.id))
    if part is None:
        raise UnknownPart(
            f'this cloud has no record of a part "{actor.id}"; check the ID and the address of '
            "the cloud. If the cloud was restored from an older backup, create the "
            "machine again"
        )
    if part.deleted_at is None and not _read_secrets(tx, actor):
        raise UnknownPart(
            f'the secrets of part "{actor.id}" are lost; make another: '
            f"cogwork fleet part rotate {actor.id}"
        )


def _require_proof(tx: Transaction, actor: Actor, now: int) -> None:
    """Raise UnknownPart if a restore may have removed the secret of a failed login."""
    _require_known_part(tx, actor)
    cloud = read_cloud(tx)
    if actor.type is ActorType.PART and cloud is not None and cloud.is_recently_restored(now):
        raise UnknownPart(
            "invalid credentials, or the cloud was restored from a backup without them in the last "
            "24 hours. If the login keeps failing, replace the secret of the part: "
            f"cogwork fleet part rotate {actor.id}"
        )

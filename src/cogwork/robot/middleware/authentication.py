"""Middleware that authenticates and authorizes each call.

It wraps every method of the handler table, so it applies to every transport. Modules and jobs are
part of the machine and need no login: their peer names are set by the server itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from cogwork.auth.errors import (
    InvalidLogin,
    NotListed,
    RoleTooLow,
    TooManyAttempts,
    Unauthenticated,
)
from cogwork.auth.exempt_paths import EXEMPT_METHODS
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role, required_role
from cogwork.net.peer import Peer
from cogwork.robot.middleware.operations import Operation, Operations, current_operation
from cogwork.wire.table.handlers import Handler, Method, Stream

if TYPE_CHECKING:  # imported only if a login is required
    from cogwork.auth.authenticator import Authenticator

T = TypeVar("T")

_AUTHORIZATION: Final = "authorization"
_PUBLIC_PREFIX: Final = "viam."
"""The prefix of the services of the public API, in all versions."""
_INTERNAL_PREFIXES: Final = ("module:", "job:")


async def _has_no_cloud() -> bool:
    return False


class AdmittedClient(NamedTuple):
    """A client that may connect."""

    identity: Identity | None
    """None if no login is required."""
    release: Callable[[], None]
    """Function that stops watching whether the client loses its access."""


class Authentication:
    def __init__(self, operations: Operations, *, allow_plaintext: bool = False) -> None:
        """Create middleware that requires no login. `allow_plaintext`: accept credentials over
        plaintext from other computers."""
        self._operations = operations
        self._allow_plaintext = allow_plaintext
        self._authenticator: Authenticator | None = None
        self._is_open = True
        """Whether other computers may call if no login is required."""
        self._held: dict[object, tuple[Identity | None, Callable[[], None]]] = {}
        self.refresh_access: Callable[[], Awaitable[bool]] = _has_no_cloud
        """Function that asks the cloud for the access list, and returns whether it has changed.
        Called before a client is refused, because the list may be out of date."""
        self.is_joined: Callable[[], bool] = lambda: False
        """Function that returns whether the machine has joined a cloud, which may send an access
        list."""

    @property
    def authenticator(self) -> Authenticator | None:
        """The authenticator; None if no login is required."""
        return self._authenticator

    def use(self, authenticator: Authenticator | None, *, is_open: bool = True) -> None:
        """Replace the credentials, and end the calls of clients whose credentials were removed.

        `is_open`: whether other computers may call if no login is required.
        """
        had_login = self._authenticator is not None
        self._authenticator, self._is_open = authenticator, is_open
        if authenticator is None:
            return
        for operation in self._operations.all():
            if operation.stream.peer.startswith(_INTERNAL_PREFIXES):
                continue
            if operation.identity is None:
                if had_login:
                    continue  # a login call, or a call whose caller is being identified
                operation.end(access_ended(None))
            elif not authenticator.is_valid(operation.identity):
                operation.end(access_ended(operation.identity))
        for identity, end in tuple(self._held.values()):
            if identity is None or not authenticator.is_valid(identity):
                end()

    async def log_in(
        self, entity: str, kind: str, payload: str, address: str, lifetime: float | None = None
    ) -> str:
        """Return a token for valid credentials. Refusals are delayed.

        Raise Unauthenticated, TooManyAttempts or InvalidLogin.
        """
        authenticator = self._authenticator
        if authenticator is None:
            raise Unauthenticated("this machine requires no login; connect without credentials")
        async with authenticator.refusals.apply():
            try:
                return authenticator.log_in(entity, kind, payload, address, lifetime)
            except (Unauthenticated, TooManyAttempts, InvalidLogin):
                # The cloud may have added the credentials since it last sent the access list.
                if not await self.refresh_access():
                    raise
                newest = self._authenticator or authenticator
                return newest.log_in(entity, kind, payload, address, lifetime)

    async def admit(self, client: Peer, end: Callable[[], None]) -> AdmittedClient:
        """Admit a client that connects through a signaling server. Raise Unauthenticated.

        `end` is called when the client loses its access.
        """
        identity = await self.ask_cloud_if_unlisted(lambda: self._identify_introduced(client))
        return AdmittedClient(identity, self.hold_connection(identity, end))

    def _identify_introduced(self, client: Peer) -> Identity | None:
        if self._authenticator is not None:
            return self.identify(self._authenticator, (), client)
        from cogwork.auth.granted_access import read_principal

        # If the cloud has named the client's principal, it also sends an access list to each
        # machine that has joined it. So refuse the client until the list has arrived.
        principal = read_principal(client.introduction, client.introduced_as)
        if principal is not None and self.is_joined():
            raise NotListed(
                "unauthenticated: this machine has not received its access list from the cloud "
                "yet; try again later"
            )
        return None

    async def ask_cloud_if_unlisted(self, identify: Callable[[], T]) -> T:
        """Call `identify`, and return the identity of the caller. Raise Unauthenticated.

        If the caller is not listed, update the access list from the cloud and try once more.
        """
        try:
            return identify()
        except NotListed:
            if not await self.refresh_access():
                raise
            return identify()

    def hold_connection(
        self, identity: Identity | None, end: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `end` when a client loses its access. Return a function that stops watching.

        Use this for connections whose client was authenticated when it connected.
        """
        stack = contextlib.ExitStack()
        stack.enter_context(self.hold(identity, end))
        if identity is not None and identity.valid_until != math.inf:
            assert self._authenticator is not None  # always set if the client has an identity
            left = self._authenticator.seconds_left(identity)
            timer = asyncio.get_running_loop().call_later(left, end)
            stack.callback(timer.cancel)
        return stack.close

    @contextlib.contextmanager
    def hold(self, identity: Identity | None, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` if the caller loses its access while the `with` block runs.

        Use this for HTTP requests, which are not operations.
        """
        key = object()
        self._held[key] = (identity, end)
        try:
            yield
        finally:
            del self._held[key]

    def wrap(self, method: Method, handle: Handler) -> Handler:
        if method.path in EXEMPT_METHODS:
            return handle
        role = role_of(method)

        async def wrapper(stream: Stream) -> None:
            identity = await self.ask_cloud_if_unlisted(
                lambda: self._identify(stream, role, method.path)
            )
            operation = current_operation()
            if identity is None or operation is None:
                await handle(stream)
                return
            operation.identity = identity
            if identity.valid_until == math.inf:
                await handle(stream)
                return
            timer = self._end_on_expiry(operation, identity)
            try:
                await handle(stream)
            finally:
                timer.cancel()

        return wrapper

    def _end_on_expiry(self, operation: Operation, identity: Identity) -> asyncio.TimerHandle:
        assert self._authenticator is not None  # always set if the caller has an identity
        return asyncio.get_running_loop().call_later(
            self._authenticator.seconds_left(identity),
            operation.end,
            Unauthenticated("unauthenticated: the token has expired; log in again"),
        )

    def check(self, method: Method, stream: Stream) -> None:
        """Raise an error if the caller is not allowed to call the method, before the request is
        received."""
        if method.path not in EXEMPT_METHODS:
            # Do not refuse unlisted clients yet: `wrap` checks them again, with an updated access
            # list.
            with contextlib.suppress(NotListed):
                self._identify(stream, role_of(method), method.path)

    def check_place(self, is_local: bool) -> None:
        """Raise Unauthenticated if no login is required and the machine serves only its own
        computer."""
        if not is_local and not self._is_open:
            raise Unauthenticated(
                "this machine requires no login, so it refuses calls from other computers; "
                "configure auth, or set network.insecure_without_auth"
            )

    def _identify(self, stream: Stream, role: Role, path: str) -> Identity | None:
        """Return the identity of the caller; None if it need not log in."""
        authenticator = self._authenticator
        if authenticator is None:
            if not self._is_open and not stream.client.introduced_as:
                self.check_place(stream.client.is_local)
            return None
        if stream.peer.startswith(_INTERNAL_PREFIXES):
            return None
        authorizations = [value for key, value in stream.metadata.items() if key == _AUTHORIZATION]
        identity = self.identify(authenticator, authorizations, stream.client)
        check_role(identity, role, path)
        return identity

    def identify(
        self, authenticator: Authenticator, authorizations: Sequence[str | bytes], client: Peer
    ) -> Identity:
        """Return the identity of the caller from its `authorization` headers or else its
        certificate.

        Raise Unauthenticated.
        """
        if client.introduced_as:
            return authenticator.introduce(client.introduced_as, client.introduction)
        self.check_confidential(client.is_confidential)
        if not authorizations and client.certificate:
            return authenticator.identify_certificate(client.certificate)
        if len(authorizations) != 1 or not isinstance(authorizations[0], str):
            raise Unauthenticated("authentication required")
        return authenticator.identify(authorizations[0])

    def check_confidential(self, is_confidential: bool) -> None:
        """Raise Unauthenticated if others on the network could read the credentials."""
        if not is_confidential and not self._allow_plaintext:
            raise Unauthenticated(
                "credentials over plaintext are refused from other computers; connect with TLS, or "
                "start the server with -allow-insecure-creds"
            )


def role_of(method: Method) -> Role:
    """Return the role that a method requires."""
    is_public = not method.is_unregistered or method.service.startswith(_PUBLIC_PREFIX)
    return required_role(method.path, is_public=is_public)


def access_ended(identity: Identity | None) -> Unauthenticated:
    """Return the error of a call whose caller had access when it began."""
    if identity is None:
        return Unauthenticated("login is required now; log in and call again")
    return Unauthenticated("unauthenticated: the credentials of this call were removed")


def check_role(identity: Identity, required: Role, target: str) -> None:
    """Raise RoleTooLow if the caller is not allowed to use the target."""
    if identity.role < required:
        raise RoleTooLow(
            f"{target} requires the role {required.name.lower()}; {identity} has the role "
            f"{identity.role.name.lower()}"
        )

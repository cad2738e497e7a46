"""gRPC calls of a machine to its cloud."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

from cogwork.net.address import TLS_PREFIX, is_loopback_address, parse_address
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import (
    CloudUnavailable,
    CredentialsRefused,
    MethodMissing,
    RetryLater,
)
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.table.retry_info import read_retry_delay
from cogwork.wire.transports.grpc_options import CLOUD_KEEPALIVE

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_HTTPS_PORT: Final = 443
_OPTIONS: Final = (
    *CLOUD_KEEPALIVE.options,
    ("grpc.max_receive_message_length", 1 << 25),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)
_CLOCK_ADVICE: Final = (
    "; check the clock of this computer: a certificate is valid at certain times only"
)
_NO_ANSWER: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)
_LOGIN_NEEDED: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

Reply = TypeVar("Reply", bound=Message)


class CloudClient:
    """A connection that logs in before the first call, and again when its token expires."""

    def __init__(
        self,
        address: str,
        login: CloudLogin,
        *,
        allow_plaintext: bool = False,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`metadata` is sent with every call.

        Raise CloudUnavailable if the address would send the login unencrypted over a network.
        """
        target = parse_address(address, _HTTPS_PORT)
        is_encrypted = target.startswith(TLS_PREFIX)
        target = target.removeprefix(TLS_PREFIX)
        if not is_encrypted and not is_loopback_address(target) and not allow_plaintext:
            raise CloudUnavailable(
                f"the login would be sent unencrypted to {target}; write https:// in "
                "cloud.app_address, or start the server with -allow-insecure-creds"
            )
        self.address = target
        self._login = login
        self._metadata = tuple(metadata)
        self._token: str | None = None
        self._login_lock = asyncio.Lock()
        self._channel = (
            grpc.aio.secure_channel(target, tls_credentials(), _OPTIONS)
            if is_encrypted
            else grpc.aio.insecure_channel(target, _OPTIONS)
        )

    async def call(self, path: str, request: Message, reply: type[Reply], timeout: float) -> Reply:
        """Call a method. Raise CloudUnavailable with the reason if the call fails."""
        try:
            token = await self._find_token(timeout)
            try:
                return await self._call(path, request, reply, timeout, token)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _LOGIN_NEEDED:
                    raise
            # Log in again: the token may be invalid, for example because the cloud's key was
            # replaced.
            token = await self._find_token(timeout, stale=token)
            return await self._call(path, request, reply, timeout, token)
        except grpc.aio.AioRpcError as error:
            raise self._describe(error) from None

    async def stream(
        self, path: str, request: Message, reply: type[Reply], silence: float
    ) -> AsyncIterator[Reply]:
        """Yield the messages of the cloud until it ends the stream.

        Raise CloudUnavailable if the call fails, or if no message arrives for `silence` seconds.
        """
        method: Any = self._channel.unary_stream(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        call: Any = None
        try:
            token = await self._find_token(silence)
            call = method(request, metadata=self._metadata_of(token))
            while True:
                async with asyncio.timeout(silence):
                    message = await call.read()
                if message is grpc.aio.EOF:
                    return
                yield message
        except TimeoutError:
            raise CloudUnavailable(
                f"the cloud at {self.address} has sent no message for {silence:g} s"
            ) from None
        except grpc.aio.AioRpcError as error:
            if error.code() in _LOGIN_NEEDED:
                self._token = None
            raise self._describe(error) from None
        finally:
            if call is not None:
                call.cancel()

    async def log_in(self, timeout: float) -> None:
        """Log in. Raise CloudUnavailable if the cloud does not answer, or refuses the login."""
        try:
            await self._find_token(timeout)
        except grpc.aio.AioRpcError as error:
            raise self._describe(error) from None

    def use_login(self, login: CloudLogin) -> None:
        """Log in with these credentials from now on."""
        self._login, self._token = login, None

    def _describe(self, error: grpc.aio.AioRpcError) -> CloudUnavailable:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            retry_after = read_retry_delay(error.trailing_metadata() or ())
            message = f"the cloud at {self.address} refuses for now: {error.details()}"
            if retry_after is not None:
                return RetryLater(message, retry_after)
            return CloudUnavailable(message)
        code, details = error.code(), error.details() or "it gives no reason"
        reason, where = f"{code.name}: {details}", f"the cloud at {self.address}"
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return CredentialsRefused(
                f"{where} refuses the credentials of this machine, {self._login.description}: "
                f"{details}; {self._login.advice}"
            )
        if code is grpc.StatusCode.PERMISSION_DENIED:
            return CloudUnavailable(
                f"{where} does not permit this with {self._login.description}: {details}; use "
                "credentials with a role on this machine, or let it join again"
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return MethodMissing(f"{where} does not have this method: {reason}; update the cloud")
        advice = _CLOCK_ADVICE if _is_about_time(details) else ""
        if code in _NO_ANSWER:
            return CloudUnavailable(f"{where} does not answer: {reason}{advice}")
        return CloudUnavailable(f"{where} answers with an error: {reason}{advice}")

    async def aclose(self) -> None:
        await self._channel.close(None)

    async def _find_token(self, timeout: float, stale: str | None = None) -> str:
        """Return the token. Log in first if there is no token, or if the token is `stale`."""
        async with self._login_lock:
            if self._token is None or self._token == stale:
                self._token = await self._log_in(timeout)
            return self._token

    async def _log_in(self, timeout: float) -> str:
        credentials = Credentials(type=self._login.type, payload=self._login.secret)
        request = AuthenticateRequest(entity=self._login.entity, credentials=credentials)
        found = await self._call(_AUTHENTICATE, request, AuthenticateResponse, timeout)
        return found.access_token

    async def _call(
        self,
        path: str,
        request: Message,
        reply: type[Reply],
        timeout: float,
        token: str | None = None,
    ) -> Reply:
        method: Any = self._channel.unary_unary(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        found: Reply = await method(request, timeout=timeout, metadata=self._metadata_of(token))
        return found

    def _metadata_of(self, token: str | None) -> tuple[tuple[str, str], ...]:
        if token is None:
            return self._metadata
        return (("authorization", f"Bearer {token}"), *self._metadata)


def _is_about_time(details: str) -> bool:
    return "not yet valid" in details or "certificate has expired" in details

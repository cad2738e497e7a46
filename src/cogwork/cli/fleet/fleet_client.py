"""Calls to a cloud, with error messages that explain what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import grpc
from google.protobuf.message import Message

from cogwork.cli.client.connection_fault import HANDSHAKE_FAILED, find_connection_fault
from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.confirmation import CannotAsk
from cogwork.cli.fleet.stored_login import FleetLogin, find_login
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_USAGE, print_error
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.net.address import TLS_PREFIX
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.proto.rpc.v1.auth_pb2 import (  # noqa: E402
    AuthenticateRequest,
    AuthenticateResponse,
    Credentials,
)

_APP_SERVICE: Final = "/viam.app.v1.AppService/"
_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_TIMEOUT: Final = 30.0
_MAX_CONCURRENT: Final = 16
_OPTIONS: Final = (
    *GRPC_OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 500),
)

Reply = TypeVar("Reply", bound=Message)
Metadata = tuple[tuple[str, str], ...]


class CloudUnreachable(CogworkError):
    """The cloud does not respond, or rejects the key."""

    status = "UNAVAILABLE"


class CloudRefused(CogworkError):
    """The cloud rejected a call."""

    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.code = code


def with_fleet(run: Callable[[FleetClient], int]) -> int:
    """Run a command with the user's login, report its errors and return the exit code."""

    def work() -> int:
        with FleetClient(find_login(os.environ)) as client:
            return run(client)

    return report_errors(work)


def report_errors(run: Callable[[], int]) -> int:
    try:
        return run()
    except (CommandError, CannotAsk, CloudUnreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    except CloudRefused as error:
        print_error(str(error))
        return EXIT_USAGE if error.code is grpc.StatusCode.NOT_FOUND else EXIT_FAILURE


class FleetClient:
    """A connection to a cloud, which logs in with its first call."""

    def __init__(self, login: FleetLogin) -> None:
        """Open the connection. Raise CommandError if the authority cannot be read."""
        self.login = login
        self._channel = _open_channel(login)
        self._metadata: Metadata | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def call(self, method: str, request: Message, reply: type[Reply]) -> Reply:
        """Call a method of AppService, or any other method by its path.

        Raise CloudUnreachable or CloudRefused.
        """
        try:
            found: Reply = self._method(method, reply)(
                request, timeout=_TIMEOUT, metadata=self._log_in()
            )
        except grpc.RpcError as error:
            raise self._explain(error) from None
        return found

    def call_each(
        self, method: str, requests: Sequence[Message], reply: type[Reply]
    ) -> Iterator[Reply]:
        """Call a method for each request, several at a time, and yield the replies in order.

        Raise CloudUnreachable or CloudRefused.
        """
        call, metadata = self._method(method, reply), self._log_in()
        waiting = iter(requests)

        def start(count: int) -> list[Any]:
            return [
                call.future(each, timeout=_TIMEOUT, metadata=metadata)
                for each in islice(waiting, count)
            ]

        running = start(_MAX_CONCURRENT)
        try:
            while running:
                found: Reply = running.pop(0).result()
                running += start(1)
                yield found
        except grpc.RpcError as error:
            raise self._explain(error) from None
        finally:
            for each in running:
                each.cancel()

    def stream(self, method: str, request: Message, reply: type[Reply]) -> Iterator[Reply]:
        """Start a call, and yield its replies until the command ends. Raise the same errors as
        `call`."""
        call: Any = self._channel.unary_stream(
            _APP_SERVICE + method,
            request_serializer=_serialize,
            response_deserializer=reply.FromString,
        )
        return self._iterate(call(request, metadata=self._log_in()))

    def _iterate(self, replies: Any) -> Iterator[Any]:
        try:
            yield from replies
        except grpc.RpcError as error:
            raise self._explain(error) from None
        finally:
            replies.cancel()

    def _method(self, method: str, reply: type[Message]) -> Any:
        return self._channel.unary_unary(
            method if method.startswith("/") else _APP_SERVICE + method,
            request_serializer=_serialize,
            response_deserializer=reply.FromString,
        )

    def _log_in(self) -> Metadata:
        """Return the metadata of calls. Raise CloudUnreachable or CloudRefused."""
        if self._metadata is None:
            credentials = Credentials(type="api-key", payload=self.login.key)
            request = AuthenticateRequest(entity=self.login.key_id, credentials=credentials)
            try:
                call = self._method(_AUTHENTICATE, AuthenticateResponse)
                token = call(request, timeout=_TIMEOUT).access_token
            except grpc.RpcError as error:
                raise self._explain(error) from None
            self._metadata = (("authorization", f"Bearer {token}"),)
        return self._metadata

    def _explain(self, error: grpc.RpcError) -> CloudUnreachable | CloudRefused:
        url, details = self.login.url, error.details() or "it gives no reason"
        why = find_connection_fault(error, self.login.address)
        if why == HANDSHAKE_FAILED:
            why += "; log in again with --ca, the certificate of the cloud's authority"
        if why is not None:
            return CloudUnreachable(
                f"cannot reach a cloud at {url} ({why}); check the address, or log in to another "
                "cloud with: cogwork fleet login URL"
            )
        match error.code():
            case grpc.StatusCode.UNAUTHENTICATED:
                return CloudUnreachable(
                    f"{url} does not accept the key {self.login.key_id} ({details}); log in with "
                    f"another one: cogwork fleet login {url}"
                )
            case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
                return CloudUnreachable(
                    f"the cloud at {url} does not answer ({details}); try again"
                )
            case grpc.StatusCode.UNIMPLEMENTED:
                return CloudRefused(
                    f"the cloud at {url} does not offer this ({details}); update the cloud",
                    error.code(),
                )
        return CloudRefused(f"the cloud refused: {details}", error.code())


def _open_channel(login: FleetLogin) -> grpc.Channel:
    if not login.is_encrypted:
        return grpc.insecure_channel(login.address, _OPTIONS)
    authorities = _read_authority(login.authority) if login.authority is not None else None
    target = login.address.removeprefix(TLS_PREFIX)
    return grpc.secure_channel(target, tls_credentials(authorities), _OPTIONS)


def _read_authority(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {os_reason(error)}") from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise CommandError(f"{file} is not a certificate; give the authority's certificate as PEM")
    return content


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()

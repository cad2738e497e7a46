"""Calls of a machine to its cloud, over real connections to this computer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.waiting import wait_until
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse

from cogwork.core.errors import CogworkError
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import (
    CloudUnavailable,
    CredentialsRefused,
    MethodMissing,
    RetryLater,
)
from cogwork.wire.table.retry_info import encode_retry_info

LOGIN = CloudLogin("part", "robot-secret", "s")
STREAM = "/test/Follow"
Code = grpc.StatusCode


class Cloud(grpc.GenericRpcHandler):
    """Gives a token for each login, and answers calls that have the newest."""

    def __init__(self) -> None:
        self.logins: list[tuple[str, str, str]] = []
        self.calls: list[dict[str, Any]] = []
        """The metadata of each call but logins."""
        self.refusal: tuple[Code, str] | None = None
        """Of calls that have the right token."""
        self.login_refusal: tuple[Code, str] | None = None
        self.trailers: tuple[tuple[str, str | bytes], ...] = ()
        self.messages: asyncio.Queue[StringValue | None] = asyncio.Queue()
        """What a stream gets; None ends it."""
        self.is_open = 0
        """Streams."""

    @property
    def token(self) -> str:
        return f"token {len(self.logins)}"

    def end_tokens(self) -> None:
        """Accept the tokens of later logins only."""
        self.logins.append(("", "", ""))

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if method.endswith("/Authenticate"):
            return grpc.unary_unary_rpc_method_handler(
                self._log_in, AuthenticateRequest.FromString, AuthenticateResponse.SerializeToString
            )
        make: Any = grpc.unary_unary_rpc_method_handler
        if method == STREAM:
            make = grpc.unary_stream_rpc_method_handler
        answer: Any = self._stream if method == STREAM else self._answer
        return make(answer, StringValue.FromString, StringValue.SerializeToString)

    async def _log_in(self, request: AuthenticateRequest, context: Any) -> AuthenticateResponse:
        if self.login_refusal is not None:
            await context.abort(*self.login_refusal)
        credentials = request.credentials
        self.logins.append((request.entity, credentials.type, credentials.payload))
        return AuthenticateResponse(access_token=self.token)

    async def _check(self, context: Any) -> None:
        self.calls.append(dict(context.invocation_metadata()))
        if self.calls[-1].get("authorization") != f"Bearer {self.token}":
            await context.abort(Code.UNAUTHENTICATED, "the token has ended")
        if self.refusal is not None:
            await context.abort(*self.refusal, trailing_metadata=self.trailers)

    async def _answer(self, request: StringValue, context: Any) -> StringValue:
        await self._check(context)
        return StringValue(value=f"{request.value}!")

    async def _stream(self, _: StringValue, context: Any) -> AsyncIterator[StringValue]:
        await self._check(context)
        self.is_open += 1
        try:
            while (message := await self.messages.get()) is not None:
                yield message
        finally:
            self.is_open -= 1


class Site:
    def __init__(self, cloud: Cloud, port: int) -> None:
        self.cloud = cloud
        self.client = CloudClient(f"http://127.0.0.1:{port}", LOGIN, metadata=(("host", "press"),))

    async def call(self) -> str:
        request = StringValue(value="hello")
        return str((await self.client.call("/test/Call", request, StringValue, 10)).value)

    def stream(self, silence: float = 10.0) -> AsyncIterator[StringValue]:
        return self.client.stream(STREAM, StringValue(), StringValue, silence)

    async def next_message(self, silence: float = 10.0) -> str:
        async with contextlib.aclosing(self.stream(silence)) as messages:  # type: ignore[type-var]
            return str((await anext(messages)).value)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    cloud = Cloud()
    server = grpc.aio.server(handlers=[cloud])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    made = Site(cloud, port)
    yield made
    await made.client.aclose()
    await server.stop(None)
    # The last channel ends the threads of gRPC, and pytest keeps what a fixture yields.
    del made.client


async def test_logs_in_once(site: Site) -> None:
    assert [await site.call() for _ in range(3)] == ["hello!"] * 3
    assert site.cloud.logins == [tuple(LOGIN)]
    assert [each["host"] for each in site.cloud.calls] == ["press"] * 3


async def test_calls_that_begin_together_share_a_login(site: Site) -> None:
    assert await asyncio.gather(*(site.call() for _ in range(5))) == ["hello!"] * 5
    assert len(site.cloud.logins) == 1


async def test_logs_in_again_when_its_token_has_ended(site: Site) -> None:
    await site.call()
    site.cloud.end_tokens()
    assert await asyncio.gather(*(site.call() for _ in range(5))) == ["hello!"] * 5
    assert len(site.cloud.logins) == 3


async def test_other_credentials_are_used_from_the_next_call_on(site: Site) -> None:
    await site.call()
    site.client.use_login(LOGIN._replace(secret="newer"))
    await site.call()
    assert [secret for _, _, secret in site.cloud.logins] == ["s", "newer"]


@pytest.mark.parametrize(
    ("code", "details", "kind", "text"),
    [
        (Code.UNAVAILABLE, "it restarts", CloudUnavailable, "does not answer: UNAVAILABLE: it re"),
        (Code.DEADLINE_EXCEEDED, "late", CloudUnavailable, "does not answer: DEADLINE_EXCEEDED"),
        (Code.NOT_FOUND, "gone", CloudUnavailable, "answers with an error: NOT_FOUND: gone"),
        (
            *(Code.PERMISSION_DENIED, "no role", CloudUnavailable),
            "does not permit this with the secret of part part: no role; use credentials with",
        ),
        (Code.UNIMPLEMENTED, "what?", MethodMissing, "not have this method: UNIMPLEMENTED: what?"),
        (Code.RESOURCE_EXHAUSTED, "too much", CloudUnavailable, "refuses for now: too much"),
        (Code.UNKNOWN, "not yet valid", CloudUnavailable, "check the clock of this computer"),
        (Code.UNAUTHENTICATED, "no", CredentialsRefused, "refuses the credentials of this machine"),
    ],
)
async def test_refusal_says_why(
    site: Site, code: Code, details: str, kind: type[CloudUnavailable], text: str
) -> None:
    site.cloud.refusal = code, details
    with pytest.raises(CloudUnavailable, match=text.replace("?", r"\?")) as raised:
        await site.call()
    assert type(raised.value) is kind
    # A refused login is tried once more, and nothing else.
    is_about_login = code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)
    assert len(site.cloud.calls) == (2 if is_about_login else 1)
    is_silent = code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
    assert ("does not answer" in str(raised.value)) is is_silent


async def test_refusal_says_when_to_try_again(site: Site) -> None:
    class Exhausted(CogworkError):
        status = "RESOURCE_EXHAUSTED"

    site.cloud.refusal = Code.RESOURCE_EXHAUSTED, "too much"
    found = encode_retry_info(Exhausted("too much"), 12.5)
    site.cloud.trailers = tuple(found.items())
    with pytest.raises(RetryLater) as raised:
        await site.call()
    assert raised.value.retry_after == 12.5


async def test_refused_login_is_not_a_fault_of_the_network(site: Site) -> None:
    site.cloud.login_refusal = Code.UNAUTHENTICATED, "no such part"
    with pytest.raises(CredentialsRefused, match="no such part; its secret was replaced"):
        await site.call()


async def test_refused_key_is_named(site: Site) -> None:
    site.client.use_login(CloudLogin("key-1", "api-key", "k"))
    site.cloud.login_refusal = Code.UNAUTHENTICATED, "no such key"
    words = "the API key key-1: no such key; the key was deleted or replaced: write another one"
    with pytest.raises(CredentialsRefused, match=words):
        await site.call()


async def test_stream_passes_messages_until_its_end(site: Site) -> None:
    for text in ("one", "two"):
        site.cloud.messages.put_nowait(StringValue(value=text))
    site.cloud.messages.put_nowait(None)
    assert [each.value async for each in site.stream()] == ["one", "two"]


async def test_silent_stream_is_given_up(site: Site) -> None:
    await site.call()
    with pytest.raises(CloudUnavailable, match="has sent no message for"):
        await site.next_message(0.2)
    await wait_until(lambda: site.cloud.is_open == 0)


async def test_stream_that_is_left_is_closed(site: Site) -> None:
    site.cloud.messages.put_nowait(StringValue(value="one"))
    assert await site.next_message() == "one"
    await wait_until(lambda: site.cloud.is_open == 0)


async def test_refused_stream_logs_in_again_the_next_time(site: Site) -> None:
    await site.call()
    site.cloud.end_tokens()
    with pytest.raises(CredentialsRefused):
        await site.next_message()
    site.cloud.messages.put_nowait(StringValue(value="one"))
    assert await site.next_message() == "one"
    site.cloud.refusal = Code.UNAVAILABLE, "it restarts"
    logins = len(site.cloud.logins)
    for _ in range(2):
        with pytest.raises(CloudUnavailable, match="it restarts"):
            await site.next_message()
    assert len(site.cloud.logins) == logins


async def test_login_does_not_travel_unencrypted() -> None:
    for address in ("http://fleet.test", "http://192.0.2.7:8080"):
        with pytest.raises(CloudUnavailable, match="would be sent unencrypted"):
            CloudClient(address, LOGIN)
    client = CloudClient("http://fleet.test:80", LOGIN, allow_plaintext=True)
    assert client.address == "fleet.test:80"
    await client.aclose()
    client = CloudClient("https://fleet.test", LOGIN)
    assert client.address == "fleet.test:443"
    await client.aclose()

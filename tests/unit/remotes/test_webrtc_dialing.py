"""Calls of a machine over WebRTC, with scripted signaling and a scripted process."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, cast

import grpc
import grpc.aio
import pytest
from tests.support.network.far_machine import failure
from tests.support.waiting import run_others

from cogwork.core.errors import CogworkError
from cogwork.net import session_description
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.errors import RemoteUnavailable
from cogwork.remotes.webrtc_dialing import WebRtcConnection, call_machine
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.webrtc_peers import NoConnection

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb  # noqa: E402

HOST = "line.hall.fleet.test"
OFFER, ANSWER = "the offer\r\n", "the answer\r\n"
UNIMPLEMENTED = failure(grpc.StatusCode.UNIMPLEMENTED, "what?")


def answer(text: str = ANSWER, kind: Literal["offer", "answer"] = "answer") -> pb.CallResponse:
    init = pb.CallResponseInitStage(sdp=session_description.encode(kind, text))
    return pb.CallResponse(uuid="7", init=init)


def candidate(text: str, **more: Any) -> pb.CallResponse:
    given = pb.ICECandidate(candidate=text, **more)
    return pb.CallResponse(uuid="7", update=pb.CallResponseUpdateStage(candidate=given))


class Site:
    """The signaling, the process of the connections, and the machine that is called."""

    def __init__(self) -> None:
        self.login = (("authorization", "Bearer x"),)
        self.replies: list[pb.CallResponse] = [answer()]
        self.faults: dict[str, Exception] = {}
        """By method."""
        self.requests: Counter[str] = Counter()
        self.is_cancelled = False
        self.is_silent = False
        """Whether the call is never answered."""
        self.ice_servers: Sequence[IceServer] = ()
        self.accepted: list[str] = []
        self.candidates: list[tuple[str, str | None, int | None]] = []
        self.peers: set[str] = set()

    @property
    def control(self) -> Site:
        return self

    def unary_unary(self, path: str, **_: Any) -> Any:
        method = path.rpartition("/")[2]

        async def start(request: Any, timeout: float, metadata: Any) -> Any:
            assert timeout > 0
            assert dict(metadata) == {"rpc-host": HOST, "authorization": "Bearer x"}
            self.requests[method] += 1
            if method in self.faults:
                raise self.faults[method]
            if method == "CallUpdate":
                assert (request.uuid, request.done) == ("7", True)
                return pb.CallUpdateResponse()
            server = pb.ICEServer(urls=["turn:x"], username="u", credential="c")
            return pb.OptionalWebRTCConfigResponse(
                config=pb.WebRTCConfig(additional_ice_servers=[server])
            )

        return start

    def unary_stream(self, path: str, **_: Any) -> Any:
        assert path.endswith("/Call")

        def start(request: Any, timeout: float, metadata: Any) -> Site:
            assert timeout > 0
            assert dict(metadata) == {"rpc-host": HOST, "authorization": "Bearer x"}
            assert session_description.decode(request.sdp, "offer") == OFFER
            return self

        return start

    async def __aiter__(self) -> AsyncIterator[pb.CallResponse]:
        if "Call" in self.faults:
            raise self.faults["Call"]
        for reply in self.replies:
            yield reply
        if self.is_silent:
            await asyncio.Event().wait()

    def cancel(self) -> None:
        self.is_cancelled = True

    async def dial(
        self, peer_id: str, ice_servers: Sequence[IceServer], server: socket.socket
    ) -> str:
        if "dial" in self.faults:
            raise self.faults["dial"]
        self.peers.add(peer_id)
        self.ice_servers = ice_servers
        assert server.fileno() >= 0
        return OFFER

    async def accept(self, peer_id: str, text: str) -> None:
        self.peers.add(peer_id)
        if "accept" in self.faults:
            raise self.faults["accept"]
        self.accepted.append(text)

    def add_candidate(self, peer_id: str, text: str, mid: str | None, index: int | None) -> None:
        self.peers.add(peer_id)
        self.candidates.append((text, mid, index))

    async def call(self) -> WebRtcConnection:
        return await call_machine(HOST, cast("RemoteConnection", self), self)


@pytest.fixture
def site() -> Site:
    return Site()


async def test_answer_opens_the_connection(site: Site) -> None:
    connection = await site.call()
    assert site.accepted == [ANSWER]
    assert site.ice_servers == [IceServer(("turn:x",), "u", "c")]
    assert site.is_cancelled
    assert connection.login == ()
    assert connection.calls is connection.control
    await connection.renew()
    lost = asyncio.ensure_future(connection.wait_until_lost())
    await run_others()
    assert not lost.done()
    await connection.aclose()
    await lost


async def test_candidates_of_the_machine_are_passed_on(site: Site) -> None:
    site.replies = [
        candidate("before"),
        answer(),
        candidate("one", sdp_mid="0", sdpm_line_index=0),
        answer("another one"),
        candidate(""),
    ]
    await (await site.call()).aclose()
    assert site.candidates == [("before", None, None), ("one", "0", 0), ("", None, None)]
    assert site.accepted == [ANSWER]
    assert len(site.peers) == 1


async def test_cloud_without_relays(site: Site) -> None:
    site.faults["OptionalWebRTCConfig"] = UNIMPLEMENTED
    await (await site.call()).aclose()
    assert site.ice_servers == []


async def test_machine_that_waits_for_no_more_candidates(site: Site) -> None:
    site.faults["CallUpdate"] = failure(grpc.StatusCode.NOT_FOUND, "it is over")
    await (await site.call()).aclose()
    assert site.accepted == [ANSWER]


@pytest.mark.parametrize(
    ("at", "fault", "reason"),
    [
        ("dial", CogworkError("it crashed"), f"no WebRTC connection to {HOST}: it crashed"),
        ("accept", NoConnection("no way"), "no way; allow UDP between the two, or add a TURN"),
        ("accept", CogworkError("it crashed"), f"no WebRTC connection to {HOST}: it crashed"),
        ("Call", UNIMPLEMENTED, "managed_by has no signaling; remove managed_by"),
    ],
)
async def test_failure_is_explained(site: Site, at: str, fault: Exception, reason: str) -> None:
    site.faults[at] = fault
    with pytest.raises(RemoteUnavailable, match=reason):
        await site.call()


@pytest.mark.parametrize("method", ["OptionalWebRTCConfig", "Call"])
async def test_refusal_of_the_cloud_is_passed_on(site: Site, method: str) -> None:
    site.faults[method] = failure(grpc.StatusCode.UNAUTHENTICATED, "no such key")
    with pytest.raises(grpc.aio.AioRpcError, match="no such key"):
        await site.call()


async def test_call_that_ends_without_an_answer(site: Site) -> None:
    site.replies = [candidate("one")]
    with pytest.raises(RemoteUnavailable, match="did not answer the call; trying again"):
        await site.call()


async def test_answer_that_is_none(site: Site) -> None:
    site.replies = [answer(kind="offer")]
    with pytest.raises(RemoteUnavailable, match=f"{HOST} sent an invalid answer"):
        await site.call()


async def test_machine_that_never_answers_is_given_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.remotes.webrtc_dialing._OPEN_TIMEOUT", 0.05)
    site.replies, site.is_silent = [], True
    with pytest.raises(RemoteUnavailable, match=r"did not connect within 0\.05 s"):
        await site.call()
    assert site.is_cancelled

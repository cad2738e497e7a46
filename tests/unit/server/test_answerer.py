"""Clients that a signaling server introduces."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.auth.test_granted_access import ACCESS, KEY_1, authenticator
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import AnswerRequestInitStage

from cogwork.auth.errors import Unauthenticated
from cogwork.auth.granted_access import describe_principal
from cogwork.auth.roles import Role
from cogwork.core.clock import ManualClock
from cogwork.core.limits.fair_places import Holder
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.operations import Operations
from cogwork.server.answerer import Answerer, SignalingSettings


class Peers:
    """Keeps who gets a place."""

    def __init__(self) -> None:
        self.callers: list[Holder] = []

    async def answer(self, sdp: str, client: Any, caller: Holder, *_: Any) -> tuple[str, str]:
        self.callers.append(caller)
        return "peer", "answer"

    def on_end(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("introduction", "is_listed", "role"),
    [
        ({"role": "owner", **describe_principal(KEY_1)}, True, Role.OPERATOR),
        (describe_principal(KEY_1), True, Role.OPERATOR),
        ({"role": "viewer"}, False, Role.VIEWER),
    ],
)
async def test_client_is_ranked_by_the_role_that_the_machine_grants(
    introduction: dict[str, str], is_listed: bool, role: Role
) -> None:
    peers: Any = Peers()
    authentication = Authentication(Operations(ManualClock()))
    authentication.use(authenticator(ACCESS if is_listed else None))
    settings = SignalingSettings("signaling.test:443", ("press.fleet.test",))
    answerer = Answerer(settings, peers, authentication.admit, ManualClock())
    offer = AnswerRequestInitStage(caller_auth_entity="k1", caller_auth_metadata=introduction)
    await answerer._open_peer(offer)
    assert peers.callers == [Holder("k1", role)]


async def test_all_clients_have_the_same_rank_without_a_login() -> None:
    peers: Any = Peers()
    settings = SignalingSettings("signaling.test:443", ("press.fleet.test",))
    admit = Authentication(Operations(ManualClock())).admit
    offer = AnswerRequestInitStage(caller_auth_entity="k1", caller_auth_metadata={"role": "viewer"})
    await Answerer(settings, peers, admit, ManualClock())._open_peer(offer)
    assert peers.callers == [Holder("k1", Role.OWNER)]


async def test_client_of_a_cloud_waits_for_the_access_list() -> None:
    """Without the list, an operator would be served as an owner."""
    peers: Any = Peers()
    settings = SignalingSettings("signaling.test:443", ("press.fleet.test",))
    authentication = Authentication(Operations(ManualClock()))
    answerer = Answerer(settings, peers, authentication.admit, ManualClock())
    introduction = {"role": "operator", **describe_principal(KEY_1)}
    offer = AnswerRequestInitStage(caller_auth_entity="k1", caller_auth_metadata=introduction)
    authentication.is_joined = lambda: True
    with pytest.raises(Unauthenticated, match="has not received its access list"):
        await answerer._open_peer(offer)
    assert peers.callers == []
    # One that only uses the signaling server of a cloud never gets a list.
    authentication.is_joined = lambda: False
    await answerer._open_peer(offer)
    assert len(peers.callers) == 1

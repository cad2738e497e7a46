"""RobotService: clients that have to be heard of."""

from __future__ import annotations

from collections.abc import Mapping

from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.resource.moments import duration
from cogwork.robot.sessions import Session, Sessions, owner_of
from cogwork.wire.described import Answer
from cogwork.wire.handlers import Stream


class SessionsService:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def answers(self) -> Mapping[str, Answer]:
        return {
            "StartSession": self.start_session,
            "SendSessionHeartbeat": self.send_session_heartbeat,
            "GetSessions": self.get_sessions,
        }

    async def start_session(
        self, request: robot.StartSessionRequest, stream: Stream
    ) -> robot.StartSessionResponse:
        session = self._sessions.start(owner_of(stream), stream.peer, request.resume)
        window = duration(self._sessions.window)
        return robot.StartSessionResponse(id=session.id, heartbeat_window=window)

    async def send_session_heartbeat(
        self, request: robot.SendSessionHeartbeatRequest, stream: Stream
    ) -> robot.SendSessionHeartbeatResponse:
        self._sessions.heartbeat(request.id, owner_of(stream))
        return robot.SendSessionHeartbeatResponse()

    async def get_sessions(self, *_: object) -> robot.GetSessionsResponse:
        return robot.GetSessionsResponse(sessions=map(_shown, self._sessions.all()))


def _shown(session: Session) -> robot.Session:
    return robot.Session(
        id=session.id,
        peer_connection_info=robot.PeerConnectionInfo(
            type=robot.PEER_CONNECTION_TYPE_GRPC, remote_address=session.peer
        ),
    )

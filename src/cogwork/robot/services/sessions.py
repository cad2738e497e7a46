"""The methods of RobotService that deal with sessions."""

from __future__ import annotations

from collections.abc import Mapping

from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.net.peer import host_of
from cogwork.resource.messages.timestamps import to_duration
from cogwork.robot.motion.open_sessions import Session
from cogwork.robot.motion.session_manager import SessionManager, session_id_of
from cogwork.wire.table.descriptor_service import UnaryHandler
from cogwork.wire.table.handlers import Stream


class SessionsService:
    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            "StartSession": self.start_session,
            "SendSessionHeartbeat": self.send_session_heartbeat,
            "GetSessions": self.get_sessions,
        }

    async def start_session(
        self, request: robot.StartSessionRequest, stream: Stream
    ) -> robot.StartSessionResponse:
        session = self._sessions.start(stream.peer, request.resume)
        window = to_duration(self._sessions.window)
        return robot.StartSessionResponse(id=session.id, heartbeat_window=window)

    async def send_session_heartbeat(
        self, request: robot.SendSessionHeartbeatRequest, stream: Stream
    ) -> robot.SendSessionHeartbeatResponse:
        self._sessions.heartbeat(request.id, stream.peer)
        return robot.SendSessionHeartbeatResponse()

    async def get_sessions(
        self, _: robot.GetSessionsRequest, stream: Stream
    ) -> robot.GetSessionsResponse:
        sessions = [_to_session_proto(each, stream) for each in self._sessions.all()]
        return robot.GetSessionsResponse(sessions=sessions)


def _to_session_proto(session: Session, stream: Stream) -> robot.Session:
    """Return the session. Hide its id from other clients, which could use it to keep the motion of
    a disconnected client going."""
    is_own = stream.peer == session.peer or session_id_of(stream) == session.id
    return robot.Session(
        id=session.id if is_own else "",
        peer_connection_info=robot.PeerConnectionInfo(
            type=robot.PEER_CONNECTION_TYPE_GRPC,
            remote_address=session.peer if is_own else host_of(session.peer),
        ),
    )

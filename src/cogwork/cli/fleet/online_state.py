"""The online state of a machine or a part, and the time of its last contact."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.cli.table import format_age
from cogwork.logs.entry import format_timestamp
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

UNKNOWN = "-"
_STATES = {
    pb.OnlineState.ONLINE_STATE_ONLINE: "online",
    pb.OnlineState.ONLINE_STATE_OFFLINE: "offline",
    pb.OnlineState.ONLINE_STATE_AWAITING_SETUP: "awaiting setup",
}


class OnlineState(NamedTuple):
    name: str | None
    """The state; None if the cloud does not report it."""
    last_seen: float | None
    """The time of the last contact, in seconds since 1970."""

    def cells(self, now: float) -> tuple[str, str]:
        """Return the table cells for the state and the last contact."""
        if self.last_seen is None:
            return self.name or UNKNOWN, UNKNOWN
        return self.name or UNKNOWN, f"{format_age(now - self.last_seen)} ago"

    def as_json(self) -> dict[str, str | None]:
        last_seen = format_timestamp(self.last_seen) if self.last_seen is not None else None
        return {"state": self.name, "last_seen": last_seen}


def read_online_state(found: pb.Robot | pb.RobotPart, now: float) -> OnlineState:
    name = _STATES.get(found.online_state)
    if found.online_state == pb.OnlineState.ONLINE_STATE_ONLINE:
        return OnlineState(name, now)
    if found.seconds_since_online > 0:
        return OnlineState(name, now - found.seconds_since_online)
    seconds = found.last_access.ToMicroseconds() / 1e6
    return OnlineState(name, seconds if seconds > 0 else None)

"""Saves the configuration of a part, unless someone else has changed it."""

from __future__ import annotations

import grpc

from cogwork.cli.fleet.fleet_client import CloudRefused, FleetClient
from cogwork.core.errors import CogworkError
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.timestamp_pb2 import Timestamp  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


class EditConflict(CogworkError):
    """Someone else saved the configuration in the meantime."""


def save_config(
    client: FleetClient, part: pb.RobotPart, text: str, known: Timestamp
) -> pb.RobotPart:
    """Save a text as it is. Raise EditConflict if the part was changed after the time `known`."""
    request = pb.UpdateRobotPartRequest(
        id=part.id, name=part.name, robot_config_json=text, last_known_update=known
    )
    try:
        return client.call("UpdateRobotPart", request, pb.UpdateRobotPartResponse).part
    except CloudRefused as error:
        if error.code is grpc.StatusCode.FAILED_PRECONDITION:
            raise EditConflict(
                f"someone else changed {part.name} in the meantime; nothing was saved"
            ) from None
        raise

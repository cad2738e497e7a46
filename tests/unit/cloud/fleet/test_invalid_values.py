"""Values that a message can hold and the records cannot are refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.core.errors import InvalidRequest

NO_TIMES = [
    Timestamp(seconds=1 << 62),
    Timestamp(seconds=-62_135_596_801),
    Timestamp(seconds=253_402_300_800),
    Timestamp(nanos=-1),
    Timestamp(nanos=(1 << 31) - 1),
]


@pytest.mark.parametrize("time", NO_TIMES, ids=str)
@pytest.mark.parametrize("field", ["start", "end"])
def test_bounds_of_a_history(acme: OwnedOrganization, field: str, time: Timestamp) -> None:
    bounds: dict[str, Any] = {field: time}
    with pytest.raises(InvalidRequest, match=f"{field} is not a time"):
        acme.run(pb.GetRobotPartHistoryRequest(id=acme.tenant.part, **bounds))


@pytest.mark.parametrize("time", NO_TIMES, ids=str)
def test_time_of_the_state_that_an_edit_is_based_on(
    acme: OwnedOrganization, time: Timestamp
) -> None:
    for request in (
        pb.UpdateRobotPartRequest(id=acme.tenant.part, last_known_update=time),
        pb.UpdateFragmentRequest(id=acme.tenant.fragment, last_known_update=time),
    ):
        with pytest.raises(InvalidRequest, match="last_known_update is not a time"):
            acme.run(request)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_of_a_configuration(acme: OwnedOrganization, number: float) -> None:
    config = Struct()
    config.update({"components": [{"attributes": {"speed": number}}]})
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        acme.run(pb.UpdateRobotPartRequest(id=acme.tenant.part, robot_config=config))

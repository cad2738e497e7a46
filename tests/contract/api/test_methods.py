"""Which methods of the public API are served, and which are refused."""

from __future__ import annotations

import pytest
from scripts.api_page import ROBOT, find_refusals, load_service

from cogwork.core.clock import SystemClock
from cogwork.graph.provider import Providers
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.wire.table.handlers import HandlerTable

SERVICES = [ROBOT, *SERVICE_BY_API.values()]
WHOLE = {"viam.service.datamanager.v1.DataManagerService", "viam.service.video.v1.VideoService"}
"""Services that are refused as a whole: there are messages, and no class of the SDK."""
REFUSED = {
    ROBOT: {"GetStatus", "StreamStatus", "SendTraces", "UploadDataFromPath"},
    "viam.service.motion.v1.MotionService": {"TempStreamArmJointPositions"},
}


@pytest.fixture
def table() -> HandlerTable:
    return build_handler_table(Machine(Providers({}), SystemClock()), SystemClock(), lambda _: None)


@pytest.mark.parametrize("name", SERVICES)
def test_every_method_of_the_descriptor_is_served_or_refused(
    table: HandlerTable, name: str
) -> None:
    described = {method.name for method in load_service(name).methods}
    assert set(find_refusals(name, table)) == (
        described if name in WHOLE else REFUSED.get(name, set())
    )
    if name not in WHOLE:
        served = {method.path.rpartition("/")[2] for method in table.methods(name)}
        assert served == described


def test_api_exists_for_each_class_of_the_sdk() -> None:
    assert sum(each.is_served for each in PUBLIC_APIS.values()) == 28, "27, and the shell"

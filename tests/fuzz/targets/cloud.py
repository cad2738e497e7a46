"""The services of the cloud for machines, agents and people, and its HTTP, over real records."""

from __future__ import annotations

import itertools

from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import StringValue
from tests.fuzz.fuzzed_cloud import MY_KEY, MY_KEY_ID, MY_PART, THEIR_PART, FuzzedCloud, Requests
from tests.fuzz.target import Target

from cogwork.core.versions.product import Product
from cogwork.wire.messages.claim_method import CLAIM_PATH, CREATE_CLAIM
from cogwork.wire.messages.follow_method import FOLLOW, GET_ACCESS
from cogwork.wire.messages.update_method import REPORT, Outcome, UpdateReport

assert THEIR_PART  # it imports the SDK, before anything else of the SDK
from viam.gen.app.agent.v1 import agent_pb2  # noqa: E402
from viam.gen.app.packages.v1.packages_pb2 import PACKAGE_TYPE_MODULE  # noqa: E402
from viam.gen.app.v1 import app_pb2, robot_pb2  # noqa: E402
from viam.gen.common.v1 import common_pb2  # noqa: E402

_APP = "/viam.app.v1.AppService"
_ROBOT = "/viam.app.v1.RobotService"
_AGENT = "/viam.app.agent.v1.AgentDeviceService"
_LOGINS = 4
"""Kinds of logins: a part, an owner, an operator, none."""

_cloud = FuzzedCloud()


def target_machines(data: bytes) -> None:
    _cloud.call(_MACHINE_REQUESTS, data)


def target_agents(data: bytes) -> None:
    _cloud.call(_AGENT_REQUESTS, data)


def target_fleet(data: bytes) -> None:
    _cloud.call(_FLEET_REQUESTS, data)


def target_http(data: bytes) -> None:
    _cloud.request(data)


def _make_machine_requests() -> Requests:
    part = MY_PART.decode()
    entry = common_pb2.LogEntry(host="a", level="info", logger_name="rdk", message="hello")
    entry.time.seconds = 1_800_000_000
    entry.caller.update({"Defined": True, "File": "a.go", "Line": 7})
    entry.fields.add().update({"key": "n", "type": 11, "integer": 3})
    agent = robot_pb2.AgentInfo(
        host="a", ips=["10.0.0.1"], os="linux", version="0.2.0", platform="linux/amd64"
    )
    return [
        (f"{_ROBOT}/Config", robot_pb2.ConfigRequest(id=part, agent_info=agent)),
        (f"{_ROBOT}/Certificate", robot_pb2.CertificateRequest(id=part)),
        (f"{_ROBOT}/Log", robot_pb2.LogRequest(id=part, logs=[entry, entry])),
        (f"{_ROBOT}/NeedsRestart", robot_pb2.NeedsRestartRequest(id=part)),
        (FOLLOW, Struct(fields={"id": Value(string_value=part)})),
        (GET_ACCESS, StringValue(value=part)),
        (CREATE_CLAIM, StringValue(value=part)),
    ]


def _make_agent_requests() -> Requests:
    part = MY_PART.decode()
    check = agent_pb2.DeviceAgentConfigRequest(
        id=part,
        host_info=agent_pb2.HostInfo(platform="linux/amd64", distro="debian:12", tags=["a"]),
        version_info=agent_pb2.VersionInfo(
            agent_running="0.2.0",
            agent_installed="0.2.0",
            viam_server_running="1.0.0",
            viam_server_installed="1.0.0",
        ),
    )
    check.agent_uptime.FromSeconds(120)
    report = UpdateReport(Product.SERVER, "1.4.0", Outcome.FAILED, part, "it crashed", 1e9)
    return [(f"{_AGENT}/DeviceAgentConfig", check), (REPORT, report.to_struct())]


def _make_fleet_requests() -> Requests:
    """Return those with more than IDs in them."""
    part, time = MY_PART.decode(), Timestamp(seconds=1_800_000_000)
    config = Struct(fields={"debug": Value(bool_value=True)})
    role = app_pb2.Authorization(
        authorization_type="role",
        authorization_id="robot_owner",
        resource_type="robot",
        resource_id=part,
    )
    asked = app_pb2.AuthorizedPermissions(
        resource_type="robot", resource_id=part, permissions=["read_robot_logs"]
    )
    requests = [
        app_pb2.GetRobotPartRequest(id=part),
        app_pb2.GetRobotPartHistoryRequest(id=part, start=time, end=time, page_limit=3),
        app_pb2.GetRobotPartLogsRequest(id=part, start=time, end=time, filter="a", limit=3),
        app_pb2.GetRobotPartLogsRequest(id=part, range="10m", levels=["info"], source="rdk"),
        app_pb2.UpdateRobotPartRequest(
            id=part, name="a", robot_config=config, last_known_update=time
        ),
        app_pb2.UpdateRobotPartRequest(id=part, name="a", robot_config_json='{"components": []}'),
        app_pb2.CreateKeyRequest(name="a", authorizations=[role]),
        app_pb2.CheckPermissionsRequest(permissions=[asked]),
        app_pb2.UpdateFragmentRequest(id=part, name="a", config=config, last_known_update=time),
        app_pb2.ListFragmentsRequest(
            organization_id=part, fragment_visibility=[app_pb2.FRAGMENT_VISIBILITY_PUBLIC]
        ),
        app_pb2.UpdateModuleRequest(
            module_id="a:b", visibility=app_pb2.VISIBILITY_PRIVATE, entrypoint="run.sh"
        ),
        app_pb2.ListRegistryItemsRequest(
            types=[PACKAGE_TYPE_MODULE],
            visibilities=[app_pb2.VISIBILITY_PRIVATE],
            platforms=["linux/amd64"],
        ),
    ]
    return [(f"{_APP}/{each.DESCRIPTOR.name.removesuffix('Request')}", each) for each in requests]


_MACHINE_REQUESTS = _make_machine_requests()
_FLEET_REQUESTS = _make_fleet_requests()
_AGENT_REQUESTS = _make_agent_requests()


def _make_seeds(requests: Requests) -> list[bytes]:
    """Return each request with each login, for the own part and for that of others."""
    seeds = []
    for part, login in itertools.product((MY_PART, THEIR_PART), range(_LOGINS)):
        for index, (_, request) in enumerate(requests):
            data = request.SerializeToString().replace(MY_PART, part)
            seeds.append(bytes([index + login * len(requests)]) + data)
    return seeds


def _http_seeds() -> list[bytes]:
    login = b'{"entity": "%b", "credentials": {"type": "api-key", "payload": "%b"}}' % (
        MY_KEY_ID,
        MY_KEY,
    )
    key = b"key_id: %b\r\nkey: %b" % (MY_KEY_ID, MY_KEY)
    grpc_web = b"content-type: application/grpc-web+proto\r\nauthorization: Bearer x"
    message = b"\0\0\0\0\x26\x0a\x24" + MY_PART
    return [
        b"GET /\r\n\r\n",
        b"POST /rpc/v1/authenticate\r\ncontent-type: application/json\r\n\r\n" + login,
        b"GET /api/json1/config?id=" + MY_PART + b"\r\n" + key + b"\r\n\r\n",
        b"GET /api/json1/config?id=" + THEIR_PART + b"\r\n" + key + b"\r\n\r\n",
        b"POST " + CLAIM_PATH.encode() + b'\r\n\r\n{"code": "ABCD-EFGH"}',
        b"GET /releases/" + b"0" * 64 + b"/cogwork-server-1.0.0-linux-amd64.tar\r\n"
        b"range: bytes=0-9\r\n\r\n",
        b"GET /packages/acme-drive-1.0.0.tar.gz\r\n" + key + b"\r\n\r\n",
        b"POST " + f"{_ROBOT}/Config".encode() + b"\r\n" + grpc_web + b"\r\n\r\n" + message,
    ]


_IDS = (MY_PART, THEIR_PART)

TARGETS = (
    Target(
        "cloud.machines",
        target_machines,
        lambda: _make_seeds(_MACHINE_REQUESTS),
        (
            "cogwork.cloud.machine.robot_service",
            "cogwork.cloud.machine.follow_service",
            "cogwork.cloud.machine.part_access_list",
            "cogwork.cloud.machine.claim_service",
            "cogwork.cloud.machine.log_lines",
            "cogwork.cloud.fleet.agent_info",
        ),
        (*_IDS, b"linux/amd64", b"info", b"error", b"\x0a\x24", b"\x12\x00", b"null"),
        close=_cloud.close,
    ),
    Target(
        "cloud.agents",
        target_agents,
        lambda: _make_seeds(_AGENT_REQUESTS),
        (
            "cogwork.cloud.updates.agent_device_service",
            "cogwork.cloud.updates.update_service",
            "cogwork.cloud.fleet.part_software",
        ),
        (*_IDS, b"linux/amd64", b"server", b"agent", b"good", b"rolled_back", b"\x0a\x24"),
        close=_cloud.close,
    ),
    Target(
        "cloud.fleet",
        target_fleet,
        lambda: _make_seeds(_FLEET_REQUESTS),
        (
            "cogwork.cloud.fleet.part_configs",
            "cogwork.cloud.fleet.part_logs",
            "cogwork.cloud.fleet.keys",
            "cogwork.cloud.registry.item_operations",
            "cogwork.cloud.registry.module_operations",
        ),
        (*_IDS, b"info", b"10m", b"robot", b"robot_owner", b"organization", b"{}", b"null"),
        close=_cloud.close,
    ),
    Target(
        "cloud.http",
        target_http,
        _http_seeds,
        ("cogwork.cloud.machine.machine_http", "cogwork.cloud.http"),
        (*_IDS, MY_KEY, MY_KEY_ID, b"GET ", b"POST ", b"\r\n", b"?id=", b"%00", b"/../", b"bytes="),
        close=_cloud.close,
    ),
)

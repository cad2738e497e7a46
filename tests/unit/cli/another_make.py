"""A machine server that is not ours: gRPC only, and as few methods as a test wants."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.message import Message

from cogwork.core.versions.named_version import NAMED_VERSION
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.component.motor.v1 import motor_pb2 as motor  # noqa: E402
from viam.gen.proto.rpc.v1 import auth_pb2 as auth  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

Answer = Callable[[Any, grpc.ServicerContext], Message]
Answers = Mapping[str, tuple[type[Message], Answer]]
"""By the path of the method: its request, and what answers it."""

WHEEL = common.ResourceName(namespace="rdk", type="component", subtype="motor", name="wheel")
BELT = common.ResourceName(namespace="rdk", type="component", subtype="camera", name="belt")
KEY_ID, KEY, TOKEN = "0c1f6b1e-6b0c-4a0e-8f2c-1f2f3a4b5c6d", "a secret", "a token"


def _robot(method: str, request: type[Message], reply: Message) -> Answers:
    return {f"/viam.robot.v1.RobotService/{method}": (request, lambda *_: reply)}


def make_status() -> robot.GetMachineStatusResponse:
    """Return the status of a machine on which one of two resources is ready."""
    status = robot.GetMachineStatusResponse(state=robot.GetMachineStatusResponse.STATE_RUNNING)
    status.config.revision = "7b3"
    status.config.last_updated.GetCurrentTime()
    ready, broken = status.resources.add(name=WHEEL), status.resources.add(name=BELT)
    ready.state = robot.ResourceStatus.STATE_READY
    ready.last_updated.GetCurrentTime()
    broken.state = robot.ResourceStatus.STATE_UNHEALTHY
    broken.error = "no such device"
    module = status.modules.add(module_name="acme", state=robot.ModuleStatus.STATE_UNHEALTHY)
    module.error = "exited with code 1"
    job = status.job_statuses.add(job_name="tidy")
    job.recent_failed_runs.add().GetCurrentTime()
    return status


NAMES = _robot(
    "ResourceNames",
    robot.ResourceNamesRequest,
    robot.ResourceNamesResponse(resources=[WHEEL, BELT]),
)
VERSION = _robot(
    "GetVersion",
    robot.GetVersionRequest,
    robot.GetVersionResponse(platform="rdk", version="0.99.0", api_version="v0.1.577"),
)
OURS = _robot(
    "GetVersion",
    robot.GetVersionRequest,
    robot.GetVersionResponse(platform="rdk", version=NAMED_VERSION, api_version="v0.1.577"),
)
STATUS = _robot("GetMachineStatus", robot.GetMachineStatusRequest, make_status())
JOINED = _robot(
    "GetCloudMetadata",
    robot.GetCloudMetadataRequest,
    robot.GetCloudMetadataResponse(machine_part_id="a-part"),
)
POWER: Answers = {
    "/viam.component.motor.v1.MotorService/IsPowered": (
        motor.IsPoweredRequest,
        lambda request, _: motor.IsPoweredResponse(is_on=request.name == "wheel", power_pct=0.5),
    )
}
ALL: Answers = {**NAMES, **VERSION, **STATUS, **JOINED, **POWER}


def _authenticate(request: Any, context: grpc.ServicerContext) -> Message:
    if (request.entity, request.credentials.type, request.credentials.payload) != (
        *(KEY_ID, "api-key", KEY),
    ):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid credentials")
    return auth.AuthenticateResponse(access_token=TOKEN)


def _require_login(answer: Answer) -> Answer:
    def check(request: Any, context: grpc.ServicerContext) -> Message:
        if ("authorization", f"Bearer {TOKEN}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication required")
        return answer(request, context)

    return check


def require_login(answers: Answers) -> Answers:
    """Return what a server answers that requires a login over gRPC."""
    login = {"/proto.rpc.v1.AuthService/Authenticate": (auth.AuthenticateRequest, _authenticate)}
    guarded = {path: (kind, _require_login(each)) for path, (kind, each) in answers.items()}
    return {**guarded, **login}


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found = self._answers.get(handler_call_details.method)
        if found is None:
            return None
        kind, answer = found
        return grpc.unary_unary_rpc_method_handler(
            answer, kind.FromString, lambda reply: reply.SerializeToString()
        )


@contextlib.contextmanager
def serve(answers: Answers) -> Iterator[str]:
    """Yield the address of a server that answers these methods."""
    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=[_Handler(answers)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(10)

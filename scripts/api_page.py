"""Render the reference page of the public API: every method, supported or refused."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from cogwork.core.clock import SystemClock
from cogwork.graph.provider import Providers
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.table.request_limits import message_limit

ROBOT = "viam.robot.v1.RobotService"
_INTRO = """\
# API

Every method of the public machine API, from the SDK's descriptors. `→` is a stream from the server,
`←` a stream from the client. A method marked **moves** belongs to its client's session: if the
client sends no heartbeat for longer than `network.sessions.heartbeat_window`, the server stops what
the client moved last.

A resource may not implement every method of its API; it then returns `UNIMPLEMENTED` with a
message. Methods marked as refused are refused for every resource.

The second column is the maximum request size: 256 KiB, or 32 MiB for commands and for requests
with an image, a point cloud, sound, tensors or a file; apart from that payload, such a request is
limited to 256 KiB. Lists and maps have at most 10,000 members in total, 30,000 in a command. Larger
requests fail with `RESOURCE_EXHAUSTED`. Requests to resources of modules may have 32 MiB.

"""


def render_api_page() -> str:
    table = build_handler_table(
        Machine(Providers({}), SystemClock()), SystemClock(), lambda _: None
    )
    sections = [_render_section("Machine", ROBOT, table)]
    sections += [_render_section(str(api), name, table) for api, name in SERVICE_BY_API.items()]
    return _INTRO + "\n".join(sections)


def _render_section(title: str, name: str, table: HandlerTable) -> str:
    service = load_service(name)
    refusals = find_refusals(name, table)
    rows = "\n".join(_render_row(method, refusals.get(method.name)) for method in service.methods)
    return f"## {title}\n\n`{name}`\n\n| method | request | | |\n|---|---|---|---|\n{rows}\n"


def find_refusals(name: str, table: HandlerTable) -> dict[str, str]:
    """Return the refused methods of a service, with the reasons."""
    if name not in table.services():
        sentence = "no built-in model has this API yet; a module may serve it"
        return {method.name: sentence for method in load_service(name).methods}
    return {
        method.path.rpartition("/")[2]: method.refusal
        for method in table.methods(name)
        if method.refusal is not None
    }


def load_service(name: str) -> ServiceDescriptor:
    """Import the files of a service, which registers its messages, and return its descriptor."""
    words = name.split(".")[1:-1]
    package = importlib.import_module(f"viam.gen.{'.'.join(words)}")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_pb2"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    found: ServiceDescriptor = pool.FindServiceByName(name)
    return found


def _render_row(method: MethodDescriptor, refusal: str | None) -> str:
    marks = " ".join(_method_marks(method))
    size = _format_size(message_limit(method.input_type).size)
    return f"| {method.name} | {size} | {marks} | {'refused: ' + refusal if refusal else ''} |"


def _format_size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def _method_marks(method: MethodDescriptor) -> Iterator[str]:
    from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored

    if method.client_streaming:
        yield "←"
    if method.server_streaming:
        yield "→"
    if method.GetOptions().Extensions[safety_heartbeat_monitored]:
        yield "**moves**"

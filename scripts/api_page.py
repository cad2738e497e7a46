"""The reference page of the public API: every method of the descriptors, served or refused."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from cogwork.core.clock import SystemClock
from cogwork.graph.provider import Providers
from cogwork.resource.services import public_services
from cogwork.robot.machine import Machine
from cogwork.robot.table import handler_table
from cogwork.wire.handlers import HandlerTable

ROBOT = "viam.robot.v1.RobotService"
_INTRO = """\
# API

Every method of the public machine API, as the SDK's descriptors have it. `→` is a stream from the
server, `←` one from the client. A method marked **moves** belongs to its client's session: when
nothing is heard of the client for longer than `network.sessions.heartbeat_window`, what it moved
last is stopped.

A resource may refuse a method that its API has; it says so with `UNIMPLEMENTED` and a sentence.
The methods that are marked as refused are so whatever the resource.

"""


def api_page() -> str:
    table = handler_table(Machine(Providers({}), SystemClock()), SystemClock(), lambda _: None)
    sections = [_section("The machine itself", ROBOT, table)]
    sections += [_section(str(each.api), each.service, table) for each in public_services()]
    return _INTRO + "\n".join(sections)


def _section(title: str, name: str, table: HandlerTable) -> str:
    service = service_of(name)
    refusals = refusals_of(name, table)
    rows = "\n".join(_row(method, refusals.get(method.name)) for method in service.methods)
    return f"## {title}\n\n`{name}`\n\n| method | | |\n|---|---|---|\n{rows}\n"


def refusals_of(name: str, table: HandlerTable) -> dict[str, str]:
    """The methods of a service that are refused, and why."""
    if name not in table.services():
        sentence = "no built-in model has this API yet"
        return {method.name: sentence for method in service_of(name).methods}
    return {
        method.path.rpartition("/")[2]: method.refusal
        for method in table.methods(name)
        if method.refusal is not None
    }


def service_of(name: str) -> ServiceDescriptor:
    """The messages of a service are known once its files are imported."""
    words = name.split(".")[1:-1]
    package = importlib.import_module(f"viam.gen.{'.'.join(words)}")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_pb2"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    found: ServiceDescriptor = pool.FindServiceByName(name)
    return found


def _row(method: MethodDescriptor, refusal: str | None) -> str:
    marks = " ".join(_marks(method))
    return f"| {method.name} | {marks} | {'refused: ' + refusal if refusal else ''} |"


def _marks(method: MethodDescriptor) -> Iterator[str]:
    from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored

    if method.client_streaming:
        yield "←"
    if method.server_streaming:
        yield "→"
    if method.GetOptions().Extensions[safety_heartbeat_monitored]:
        yield "**moves**"

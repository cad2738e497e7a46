"""The models that the modules of a running machine provide."""

from __future__ import annotations

import contextlib
import importlib
import socket
from collections.abc import Sequence
from typing import Any

from cogwork.cli.client.http_client import Declined, Unreachable
from cogwork.cli.models.model_entry import ModelEntry
from cogwork.cli.parsers.options import parse_machine_address
from cogwork.core.errors import InvalidName
from cogwork.graph.name import Api, ModelName
from cogwork.net.address import TLS_PREFIX

_PROBE_TIMEOUT = 0.5


def fetch_module_models(given: str | None) -> Sequence[ModelEntry]:
    """Return the models of the modules of the machine at an address.

    Without an address, ask the default one, and return nothing if no machine answers there.
    Raise Declined or Unreachable.
    """
    address = parse_machine_address(given)
    if given is None and not _accepts_connections(address):
        return []
    try:
        return _fetch(address)
    except (Declined, Unreachable):
        if given is None:
            return []
        raise


def _accepts_connections(address: str) -> bool:
    """Probe the port, because gRPC imports slowly and waits longer."""
    host, _, port = address.removeprefix(TLS_PREFIX).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_TIMEOUT).close()
    except OSError:
        return False
    return True


def _fetch(address: str) -> list[ModelEntry]:
    # gRPC imports slowly, so import it only if a machine runs.
    import grpc

    from cogwork.cli.client.grpc_client import ask_machine, call_robot

    robot: Any = importlib.import_module("viam.gen.robot.v1.robot_pb2")

    def ask(channel: grpc.Channel) -> list[ModelEntry]:
        reply = call_robot(
            channel,
            "GetModelsFromModules",
            robot.GetModelsFromModulesRequest(),
            robot.GetModelsFromModulesResponse,
        )
        found = []
        for each in reply.models:
            with contextlib.suppress(InvalidName):
                api, name = Api.parse(each.api), ModelName.parse(each.model)
                source = f"module {each.module_name}"
                found.append(ModelEntry(api, name, source, f"From {source} at {address}."))
        return found

    return ask_machine(address, ask)

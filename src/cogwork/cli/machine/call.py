"""`cogwork call`: call any method of any resource, with JSON in and out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from cogwork.cli.client.connection_fault import find_connection_fault
from cogwork.cli.client.grpc_client import CommandError, with_channel
from cogwork.cli.client.motion_session import open_session, wait_while_moving
from cogwork.cli.client.rpc_error_text import ran_out_of_time
from cogwork.cli.machine.call_request import build_request
from cogwork.cli.machine.resource_service import fetch_descriptor, find_resource
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_json, print_text
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.robot.motion.moving_methods import is_marked


def call(arguments: argparse.Namespace) -> int:
    return with_channel(arguments.address, lambda channel: _call(channel, arguments))


def _call(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    resource = find_resource(channel, arguments.resource)
    name = resource.name
    method = _find_method(fetch_descriptor(channel, resource), name, arguments.method)
    text = sys.stdin.read() if arguments.request == "-" else arguments.request
    request = build_request(method, name, text)
    call = _Call(channel, method, arguments.timeout)
    try:
        _make_call(call, name, request, arguments)
    except grpc.RpcError as error:
        reason = _explain_failure(error, call, name, arguments.address)
        if reason is None:
            raise
        print_error(reason)
        return EXIT_FAILURE
    return EXIT_OK


def _make_call(call: _Call, name: str, request: Any, arguments: argparse.Namespace) -> None:
    if is_marked(call.method) and not arguments.detach:
        _move(call, name, request)
    else:
        call.print_replies(request)


def _explain_failure(error: grpc.RpcError, call: _Call, name: str, address: str) -> str | None:
    """Explain an error that depends on the call; None for other errors."""
    method = call.method.name
    if ran_out_of_time(error, call.path) and find_connection_fault(error, address) is None:
        return (
            f"{method} of {name} did not end within {call.timeout:g}s; allow it more time with "
            f"--timeout, or see the state of {name} with `cogwork status`"
        )
    if error.code() is grpc.StatusCode.UNIMPLEMENTED and call.path in (error.details() or ""):
        return f"the model of {name} does not implement {method}; use another method or model"
    return None


def _move(call: _Call, name: str, request: Any) -> None:
    """Make a call that moves a resource, and wait until the resource is at rest."""
    methods = call.method.containing_service.methods_by_name
    with open_session(call.channel) as metadata:
        call.print_replies(request, metadata)
        if not metadata or not {"IsMoving", "Stop"}.issubset(methods):
            return
        sibling = {each: replace(call, method=methods[each]) for each in ("IsMoving", "Stop")}
        asking = build_request(methods["IsMoving"], name, "{}")
        stopping = build_request(methods["Stop"], name, "{}")

        def is_moving() -> bool:
            (reply,) = sibling["IsMoving"].iter_replies(asking)
            return bool(reply.is_moving)

        if is_moving():
            note = f"{name} moves while this command runs; press Ctrl-C to stop it"
            print_text(f"{note} (--detach leaves it moving)", sys.stderr)
            wait_while_moving(is_moving, lambda: list(sibling["Stop"].iter_replies(stopping)))


def _find_method(service: ServiceDescriptor, name: str, wanted: str | None) -> MethodDescriptor:
    """Find a method by its proto name or its Python name: GetReadings, get_readings."""
    if wanted is None:
        raise CommandError(f"name a method of {name}: {', '.join(service.methods_by_name)}")
    plain = wanted.replace("_", "").lower()
    for each, method in service.methods_by_name.items():
        if each.lower() == plain:
            found: MethodDescriptor = method
            break
    else:
        names = list(service.methods_by_name)
        hint = did_you_mean(wanted, names) or f"its methods: {', '.join(names)}"
        raise CommandError(f'{name} ({service.full_name}) has no method "{wanted}"; {hint}')
    if found.client_streaming:
        raise CommandError(
            f"{found.name} takes a stream of requests; call it from a client program"
        )
    return found


@dataclass(frozen=True)
class _Call:
    channel: grpc.Channel
    method: MethodDescriptor
    timeout: float

    @property
    def path(self) -> str:
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    def print_replies(self, request: Any, metadata: Sequence[tuple[str, str]] = ()) -> None:
        for reply in self.iter_replies(request, metadata):
            print_json(
                MessageToDict(
                    reply,
                    preserving_proto_field_name=True,
                    # Print zero and false, because a reply of {} would be ambiguous.
                    always_print_fields_with_no_presence=True,
                )
            )

    def iter_replies(self, request: Any, metadata: Sequence[tuple[str, str]] = ()) -> Iterator[Any]:
        method = self.method
        streams = method.server_streaming
        make = self.channel.unary_stream if streams else self.channel.unary_unary
        start: Any = make(
            self.path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        answer = start(request, timeout=self.timeout, metadata=metadata)
        if streams:
            yield from answer
        else:
            yield answer

"""`cogwork call`: any method of any resource of a running machine, with JSON in and out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass

from cogwork.cli.dial import Misused, ask, dialed, resources_of
from cogwork.cli.reflect import service_of
from cogwork.cli.terminal import FINE, print_json
from cogwork.config.diagnose import did_you_mean
from cogwork.resource import sdk
from cogwork.wire.naming import NAMES, name_field

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402


def call(arguments: argparse.Namespace) -> int:
    return dialed(arguments.address, lambda channel: _call(channel, arguments))


def _call(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    name, service_name = _resource(channel, arguments.resource)
    method = _method(service_of(channel, service_name), arguments.method)
    request = _request(method, name, arguments.request)
    for reply in _replies(channel, method, request, arguments.timeout):
        print_json(MessageToDict(reply, preserving_proto_field_name=True))
    return FINE


def _resource(channel: grpc.Channel, wanted: str) -> tuple[str, str]:
    """The name that requests carry, and the service that carries its API."""
    full = resources_of(channel)
    found = [each for each, r in full.items() if wanted in (each, r.name)]
    if not found:
        hint = did_you_mean(wanted, [r.name for r in full.values()]) or "`cogwork status` lists all"
        raise Misused(f'the machine has no resource "{wanted}"; {hint}')
    if len(found) > 1:
        raise Misused(f'several resources are called "{wanted}": write {" or ".join(found)}')
    resource = full[found[0]]
    carried = ask(
        channel,
        "ResourceRPCSubtypes",
        robot.ResourceRPCSubtypesRequest(),
        robot.ResourceRPCSubtypesResponse,
    )
    for each in carried.resource_rpc_subtypes:
        api = each.subtype
        if (api.namespace, api.type, api.subtype) == (
            resource.namespace,
            resource.type,
            resource.subtype,
        ):
            return resource.name, each.proto_service
    raise Misused(f"the machine does not say which service carries {found[0]}")


def _method(service: ServiceDescriptor, wanted: str) -> MethodDescriptor:
    """By its name in the proto, or as Python writes it: GetReadings, get_readings."""
    plain = wanted.replace("_", "").lower()
    for name, method in service.methods_by_name.items():
        if name.lower() == plain:
            found: MethodDescriptor = method
            break
    else:
        names = list(service.methods_by_name)
        hint = did_you_mean(wanted, names) or f"it has {', '.join(names)}"
        raise Misused(f'{service.full_name} has no method "{wanted}"; {hint}')
    if found.client_streaming:
        raise Misused(f"{found.name} takes a stream of requests; use a client program for it")
    return found


def _request(method: MethodDescriptor, name: str, text: str) -> Any:
    request = GetMessageClass(method.input_type)()
    try:
        content = json.loads(sys.stdin.read() if text == "-" else text)
        if not isinstance(content, dict):
            raise Misused(f"the request is a JSON object, such as {_example(method)}")
        ParseDict(content, request)
    except (json.JSONDecodeError, ParseError, TypeError, AttributeError) as error:
        fields = ", ".join(field.name for field in method.input_type.fields)
        raise Misused(f"the request cannot be read: {error}; its fields are {fields}") from error
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, getattr(request, field) or name)
    return request


def _example(method: MethodDescriptor) -> str:
    fields = [each.name for each in method.input_type.fields if each.name not in (*NAMES, "extra")]
    return json.dumps({fields[0]: "…"}) if fields else "{}"


def _replies(
    channel: grpc.Channel, method: MethodDescriptor, request: Any, timeout: float
) -> Iterator[Any]:
    path = f"/{method.containing_service.full_name}/{method.name}"
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    start: Any = make(
        path,
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    answer = start(request, timeout=timeout)
    if method.server_streaming:
        yield from answer
    else:
        yield answer

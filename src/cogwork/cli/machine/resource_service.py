"""The resource that a command names, and the descriptor of its gRPC service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from cogwork.cli.client.grpc_client import (
    CommandError,
    call_robot,
    list_resources,
    match_name,
)
from cogwork.cli.client.reflection_client import fetch_service
from cogwork.cli.client.sdk_descriptors import find_sdk_service
from cogwork.cli.terminal import print_error
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.sentences import join_names
from cogwork.graph.name import Api
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_MAX_LISTED = 8


class FoundResource(NamedTuple):
    full_name: str
    name: str
    service: str
    """The gRPC service of its API."""


def find_resource(channel: grpc.Channel, wanted: str) -> FoundResource:
    """Find a resource by its name or full name. Raise CommandError if there is not exactly one."""
    full = list_resources(channel)
    found = match_name(full, wanted)
    if not found:
        raise CommandError(f'the machine has no resource "{wanted}"; {_suggest(wanted, full)}')
    if len(found) > 1:
        raise CommandError(f'several resources are named "{wanted}"; use {" or ".join(found)}')
    resource = full[found[0]]
    api = Api(resource.namespace, resource.type, resource.subtype)
    service = _list_services(channel).get(api)
    if service is None:
        raise CommandError(f"the machine does not list a gRPC service for {found[0]}")
    return FoundResource(found[0], resource.name, service)


def fetch_descriptor(channel: grpc.Channel, resource: FoundResource) -> ServiceDescriptor:
    """Return the machine's descriptor of the resource's service, or else the SDK's descriptor."""
    try:
        return fetch_service(channel, resource.service, resource.full_name)
    except CommandError:
        found = find_sdk_service(resource.service)
        if found is None:
            raise
        print_error(
            f"the machine does not describe {resource.service}, so its methods are taken from "
            f"viam-sdk {sdk.VERSION}"
        )
        return found


def _suggest(wanted: str, resources: Mapping[str, Any]) -> str:
    names = [each.name for each in resources.values()]
    choices = [*resources, *names] if "/" in wanted else names
    if hint := did_you_mean(wanted, choices):
        return hint
    if not names:
        return "it has no resources; add one to its configuration"
    return f"it has {join_names(names, _MAX_LISTED)}; see `cogwork status`"


def _list_services(channel: grpc.Channel) -> Mapping[Api, str]:
    """Return the gRPC services of the machine, or of the public APIs if it does not list any."""
    try:
        listed = call_robot(
            channel,
            "ResourceRPCSubtypes",
            robot.ResourceRPCSubtypesRequest(),
            robot.ResourceRPCSubtypesResponse,
        )
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return SERVICE_BY_API
        raise
    return {
        Api(each.subtype.namespace, each.subtype.type, each.subtype.subtype): each.proto_service
        for each in listed.resource_rpc_subtypes
    }

"""Converts resource names to and from messages of the public API."""

from __future__ import annotations

from viam.gen.common.v1 import common_pb2 as common

from cogwork.graph.name import Api, ResourceName


def name_to_proto(name: ResourceName) -> common.ResourceName:
    api = name.api
    return common.ResourceName(
        namespace=api.namespace, type=api.kind, subtype=api.subtype, name=name.short
    )


def name_from_proto(message: common.ResourceName) -> ResourceName:
    return ResourceName.from_short(
        Api(message.namespace, message.type, message.subtype), message.name
    )

"""Names as the messages of the public API carry them."""

from __future__ import annotations

from viam.gen.common.v1 import common_pb2 as common

from cogwork.graph.name import Api, ResourceName


def name_message(name: ResourceName) -> common.ResourceName:
    api = name.api
    return common.ResourceName(
        namespace=api.namespace, type=api.kind, subtype=api.subtype, name=name.short
    )


def name_in(message: common.ResourceName) -> ResourceName:
    return ResourceName.of(Api(message.namespace, message.type, message.subtype), message.name)

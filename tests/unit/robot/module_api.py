"""An API that only a module knows, and its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.protobuf import struct_pb2, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.graph.name import Api, ResourceName
from cogwork.robot.hosts import ModuleHost, NoModules

OWN = Api.parse("acme:service:own")
OWN_RESOURCE = ResourceName(OWN, "hers")
OWN_API = """
name: "own.proto" package: "acme.own.v1" syntax: "proto3"
dependency: "google/protobuf/struct.proto"
message_type {
  name: "Named"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "Command"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field {
    name: "command" number: 2 label: LABEL_OPTIONAL
    type: TYPE_MESSAGE type_name: ".google.protobuf.Struct"
  }
}
service {
  name: "OwnService"
  method { name: "Greet" input_type: "Named" output_type: "Named" }
  method { name: "Flow" input_type: "Named" output_type: "Named" server_streaming: true }
  method { name: "DoCommand" input_type: "Command" output_type: "Named" }
}
"""


class OwnApiModules(NoModules):
    """A module that provides an API which only it knows."""

    def __init__(self, *files: FileDescriptorProto) -> None:
        self._pool = DescriptorPool()
        for file in files:
            self._pool.Add(file)  # type: ignore[no-untyped-call]
        self._described = bool(files)

    def services(self) -> Mapping[Api, str]:
        return {OWN: "acme.own.v1.OwnService"}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {"acme.own.v1.OwnService": self._pool} if self._described else {}


def make_modules(text: str) -> Callable[[], ModuleHost]:
    struct = FileDescriptorProto.FromString(struct_pb2.DESCRIPTOR.serialized_pb)
    own = text_format.Parse(text, FileDescriptorProto())
    return lambda: OwnApiModules(struct, own)

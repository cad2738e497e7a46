"""Valid and invalid requests for every method of the public API."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpclib.health.v1 import health_pb2
from grpclib.reflection.v1 import reflection_pb2
from grpclib.reflection.v1alpha import reflection_pb2 as old_reflection_pb2

from cogwork.graph.public_apis import PUBLIC_APIS
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
import viam.gen  # noqa: E402
from viam.gen.robot.v1 import robot_pb2  # noqa: E402

DEEPEST = 4
NAMES = ("s", "m", "b", "w", "g", "gs", "nobody", "s:m", "")
STOPS_THE_SERVER = "/viam.robot.v1.RobotService/Shutdown"


@dataclass(frozen=True)
class Method:
    path: str
    request: Descriptor
    streams: bool
    """Whether it continues as long as a client listens."""
    served: bool

    @property
    def takes_bytes(self) -> bool:
        return _takes_bytes(self.request, DEEPEST)


def public_methods() -> list[Method]:
    """Return the methods of the machine and its resources, served or not."""
    _import_all()
    served = {each.service: each.is_served for each in PUBLIC_APIS.values() if each.service}
    found = [
        _method(method, served[service.full_name])
        for module in _modules()
        for service in module.DESCRIPTOR.services_by_name.values()
        if service.full_name in served
        for method in service.methods
    ]
    assert {method.path.split("/")[1] for method in found} == set(served)
    for own in (robot_pb2, health_pb2, reflection_pb2, old_reflection_pb2):
        for service in own.DESCRIPTOR.services_by_name.values():
            found += [_method(method, True) for method in service.methods]
    return sorted(
        (method for method in found if method.path != STOPS_THE_SERVER), key=lambda each: each.path
    )


def valid_request(method: Method, dice: random.Random) -> bytes:
    return _message(method.request, dice, DEEPEST).SerializeToString()


def mutate(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        data = dice.choice(MUTATIONS)(data, dice)
    return data


def _flip_bits(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(dice.randint(1, 4)):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _replace_byte(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    changed[dice.randrange(len(changed))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(changed)


def _truncate(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randint(0, len(data))]


def _extend(data: bytes, dice: random.Random) -> bytes:
    return data + dice.randbytes(dice.choice((1, 7, 300)))


def _insert(data: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(data))
    return data[:at] + dice.randbytes(dice.randint(1, 20)) + data[at:]


def _repeat(data: bytes, dice: random.Random) -> bytes:
    return data * dice.choice((2, 3, 50))


def _add_huge_number(data: bytes, dice: random.Random) -> bytes:
    number = bytes([dice.randint(1, 15) << 3]) + b"\xff" * dice.choice((4, 9, 10, 30))
    return data + number + b"\x01"


def _add_huge_length(data: bytes, dice: random.Random) -> bytes:
    return data + bytes([dice.randint(1, 15) << 3 | 2]) + b"\xff\xff\xff\xff\x0f"


def _add_invalid_text(data: bytes, dice: random.Random) -> bytes:
    """Add a field of bytes that are not UTF-8: a name, a number or a message."""
    key = bytes([dice.randint(1, 15) << 3 | 2])
    return key + b"\x04\xff\xfe\xc0\x80" + data


def _add_other_type(data: bytes, dice: random.Random) -> bytes:
    """Add a field of an unexpected wire type."""
    key = bytes([dice.randint(1, 15) << 3 | dice.choice((0, 1, 3, 4, 5, 6, 7))])
    return key + dice.randbytes(9) + data


def _add_odd_number(data: bytes, dice: random.Random) -> bytes:
    """Add NaN, infinity and the like, wherever a double may be."""
    odd = dice.choice((b"\0" * 6 + b"\xf8\x7f", b"\0" * 6 + b"\xf0\xff", b"\xff" * 6 + b"\xef\x7f"))
    return data + bytes([dice.randint(1, 6) << 3 | 1]) + odd


def _nest(data: bytes, dice: random.Random) -> bytes:
    """Nest the message repeatedly."""
    field = bytes([dice.randint(1, 6) << 3 | 2])
    for _ in range(dice.choice((5, 60, 200))):
        data = field + _varint(len(data)) + data
    return data


def _clear(data: bytes, dice: random.Random) -> bytes:
    del data, dice
    return b""


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits,
    _replace_byte,
    _truncate,
    _extend,
    _insert,
    _repeat,
    _add_huge_number,
    _add_huge_length,
    _add_invalid_text,
    _add_other_type,
    _add_odd_number,
    _nest,
    _clear,
)


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(viam.gen.__path__, "viam.gen."):
        if module.name.endswith("_pb2") and (
            ".component." in module.name or ".service." in module.name
        ):
            yield importlib.import_module(module.name)


def _import_all() -> None:
    for _ in _modules():
        pass


def _method(method: MethodDescriptor, served: bool) -> Method:
    assert method.containing_service is not None
    return Method(
        f"/{method.containing_service.full_name}/{method.name}",
        method.input_type,
        method.server_streaming or method.client_streaming,
        served,
    )


def _takes_bytes(message: Descriptor, depth: int) -> bool:
    return any(
        field.type == FieldDescriptor.TYPE_BYTES
        or (
            field.message_type is not None and depth and _takes_bytes(field.message_type, depth - 1)
        )
        for field in message.fields
    )


def _message(descriptor: Descriptor, dice: random.Random, depth: int) -> Message:
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if dice.random() < 0.3 and "name" not in field.name:
            continue
        if field.message_type is not None and depth == 0:
            continue
        _fill(message, field, dice, depth)
    return message


def _fill(message: Message, field: FieldDescriptor, dice: random.Random, depth: int) -> None:
    if _is_map(field):
        _fill_map(message, field, dice, depth)
    elif field.is_repeated:
        values = [_value(field, dice, depth) for _ in range(dice.randint(0, 3))]
        getattr(message, field.name).extend(values)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(_value(field, dice, depth))
    else:
        setattr(message, field.name, _value(field, dice, depth))


def _fill_map(message: Message, field: FieldDescriptor, dice: random.Random, depth: int) -> None:
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    entries = getattr(message, field.name)
    for _ in range(dice.randint(0, 3)):
        made = _value(value, dice, depth)
        if value.message_type is not None:
            entries[_value(key, dice, depth)].CopyFrom(made)
        else:
            entries[_value(key, dice, depth)] = made


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _value(field: FieldDescriptor, dice: random.Random, depth: int) -> Any:
    kind = FieldDescriptor
    if field.message_type is not None:
        return _message(field.message_type, dice, depth - 1)
    if field.type == kind.TYPE_STRING:
        return (
            dice.choice(NAMES) if "name" in field.name else dice.choice(("", "a", "ü", "x" * 300))
        )
    if field.type == kind.TYPE_BYTES:
        return dice.randbytes(dice.choice((0, 10, 2000)))
    if field.type == kind.TYPE_BOOL:
        return dice.random() < 0.5
    if field.type == kind.TYPE_ENUM:
        return dice.choice([each.number for each in field.enum_type.values])
    if field.type in (kind.TYPE_DOUBLE, kind.TYPE_FLOAT):
        return dice.choice((0.0, 1.0, -1.0, 1e-300, 3.4e38, float("nan"), float("inf")))
    if field.type in (kind.TYPE_UINT32, kind.TYPE_UINT64, kind.TYPE_FIXED32, kind.TYPE_FIXED64):
        return dice.choice((0, 1, 2, (1 << 32) - 1))
    return dice.choice((0, 1, -1, 7, (1 << 31) - 1, -(1 << 31)))

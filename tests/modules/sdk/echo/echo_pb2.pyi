from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class EchoRequest(_message.Message):
    __slots__ = ("name", "text", "data", "times", "size", "pause", "status")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    data: bytes
    times: int
    size: int
    pause: float
    status: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ..., times: _Optional[int] = ..., size: _Optional[int] = ..., pause: _Optional[float] = ..., status: _Optional[int] = ...) -> None: ...

class EchoReply(_message.Message):
    __slots__ = ("text", "data", "number", "received", "metadata", "remaining", "cancelled", "running")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    text: str
    data: bytes
    number: int
    received: int
    metadata: _containers.ScalarMap[str, str]
    remaining: float
    cancelled: int
    running: int
    def __init__(self, text: _Optional[str] = ..., data: _Optional[bytes] = ..., number: _Optional[int] = ..., received: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., remaining: _Optional[float] = ..., cancelled: _Optional[int] = ..., running: _Optional[int] = ...) -> None: ...

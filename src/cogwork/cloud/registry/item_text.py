"""Texts and details of registry items, with limited sizes."""

from __future__ import annotations

from typing import Final, TypeVar

from google.protobuf.json_format import MessageToJson, Parse
from google.protobuf.message import Message

from cogwork.core.errors import InvalidRequest

_MAX_TEXT: Final = 20_000
_MAX_DETAILS: Final = 1 << 20

M = TypeVar("M", bound=Message)


def require_text(text: str, what: str) -> str:
    if len(text) > _MAX_TEXT:
        raise InvalidRequest(f"the {what} has more than {_MAX_TEXT} characters; shorten it")
    return text


def format_details(message: Message) -> str:
    """Return the details of an item as stored text. Raise InvalidRequest."""
    text = MessageToJson(message, indent=None)
    if len(text) > _MAX_DETAILS:
        raise InvalidRequest(f"the details are larger than {_MAX_DETAILS >> 10} KiB; shorten them")
    return text


def parse_details(text: str, message: M) -> M:
    return Parse(text, message, ignore_unknown_fields=True)

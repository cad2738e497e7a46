"""By which of its fields a request says what resource it is for."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

NAMES = ("name", "controller", "board_name")


def name_field(request: Any) -> str | None:
    """Of the request's descriptor. None: it is for no resource in particular, or says so in a
    message within."""
    for name in NAMES:
        field = request.fields_by_name.get(name)
        if field is not None and field.type == FieldDescriptor.TYPE_STRING:
            return name
    return None

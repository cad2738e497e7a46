"""Finds the field of a request that names its resource."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

NAME_FIELDS = ("name", "controller", "board_name")


def name_field(request: Any) -> str | None:
    """Return the name field of a request's descriptor.

    Return None if the request has no resource, or names it in a nested message.
    """
    for name in NAME_FIELDS:
        field = request.fields_by_name.get(name)
        if field is not None and field.type == FieldDescriptor.TYPE_STRING:
            return name
    return None

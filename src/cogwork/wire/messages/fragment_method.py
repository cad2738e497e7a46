"""The method that previews the effects of an edit of a fragment, before it is saved.

`Preview` takes the request of `AppService.UpdateFragment` and returns a google.protobuf.Struct,
whose fields are the fields of `FragmentPreview`. For mistakes in the fragment itself, it raises the
same errors as saving. Mistakes in the merged configurations are listed in the reply. A cloud
without this method answers UNIMPLEMENTED.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

FRAGMENT_SERVICE: Final = "cogwork.cloud.v1.FragmentService"
PREVIEW: Final = f"/{FRAGMENT_SERVICE}/Preview"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The effects on parts that have the same configuration."""

    parts: list[str]
    """The names of the machines. A part that is not a main part is named with a slash."""
    plan: str
    """The steps with which the servers would apply the change, as `cogwork config diff` prints
    them."""
    mistakes: list[str]
    """New mistakes that prevent the edit from being saved."""
    errors: list[str]
    """New errors: resources that would not run, or settings that would be ignored. They do not
    prevent saving."""


@dataclass(frozen=True, slots=True)
class FragmentPreview:
    machines: int
    """The number of machines in the fragment's organization that use the fragment, in any
    version."""
    other_machines: int
    """The number of machines in other organizations that use the fragment. They are not checked."""
    changes: list[PlannedChange]
    unchanged_parts: int
    """The number of parts for which the edit makes no difference."""
    unchecked_parts: int
    """The number of parts that were not checked, because there are too many different
    configurations."""

    def to_struct(self) -> Struct:
        found = Struct()
        found.update(asdict(self))
        return found


def parse_preview(message: Struct) -> FragmentPreview:
    fields: dict[str, Any] = MessageToDict(message)
    return FragmentPreview(
        int(fields.get("machines", 0)),
        int(fields.get("other_machines", 0)),
        [
            PlannedChange(
                each.get("parts", []),
                each.get("plan", ""),
                each.get("mistakes", []),
                each.get("errors", []),
            )
            for each in fields.get("changes", [])
        ],
        int(fields.get("unchanged_parts", 0)),
        int(fields.get("unchecked_parts", 0)),
    )

"""The method by which an owner sees what an edit of a fragment would change, before it is saved.

`Preview` takes the request of `AppService.UpdateFragment` and returns a google.protobuf.Struct,
whose fields are those of `FragmentPreview`. It raises what saving raises for mistakes in the
fragment itself, and lists those that machines would get. A cloud without it answers UNIMPLEMENTED.
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
    """What happens to parts with the same configuration."""

    parts: list[str]
    """The names of their machines; those of other parts than the main one with a slash."""
    plan: str
    """What their servers would build, change and close, as `cogwork config diff` says it."""
    mistakes: list[str]
    """Those that the edit makes. They keep it from being saved."""
    errors: list[str]
    """What would not run, or not be used, because of the edit. It can be saved."""


@dataclass(frozen=True, slots=True)
class FragmentPreview:
    machines: int
    """Machines of the fragment's organization that use it, in some version."""
    other_machines: int
    """Machines of other organizations, which are not checked."""
    changes: list[PlannedChange]
    unchanged_parts: int
    """Parts that use another version of it."""
    unchecked_parts: int
    """Parts that were not checked, because there are too many different configurations."""

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

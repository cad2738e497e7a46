"""The messages about updates between agents and clouds, in addition to AgentDeviceService.

`Report` takes a google.protobuf.Struct with the fields of `UpdateReport`, and returns a
google.protobuf.Empty. A cloud without the method answers UNIMPLEMENTED.

In the request of `DeviceAgentConfig`, a Cogwork agent adds `AGENT_TAG` to the tags of its host. In
the reply, `cogwork_rollback` in the advanced settings lists products to roll back: the agent
installs the given version even if it is older than the current version.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct

from cogwork.core.errors import InvalidRequest
from cogwork.core.versions.product import Product

UPDATE_SERVICE: Final = "cogwork.cloud.v1.UpdateService"
REPORT: Final = f"/{UPDATE_SERVICE}/Report"

AGENT_TAG: Final = "cogwork-agent"
ROLLBACK: Final = "cogwork_rollback"

_MAX_ID: Final = 100
_MAX_VERSION: Final = 100
_MAX_REASON: Final = 1000
_MAX_TIME: Final = 1e11
"""Maximum time, in seconds since 1970."""


class Outcome(enum.StrEnum):
    """The result of an update to a version."""

    WAITING = "waiting"
    """The update is pending, for instance until the maintenance window."""
    GOOD = "good"
    FAILED = "failed"
    """The version could not be installed. The machine still has the previous version."""
    ROLLED_BACK = "rolled_back"
    """The version was installed but did not work. The machine is back on the previous version."""

    @property
    def is_failure(self) -> bool:
        return self in (Outcome.FAILED, Outcome.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class UpdateReport:
    product: Product
    version: str
    """The version of the update, even if it could not be installed."""
    outcome: Outcome
    id: str = ""
    """The ID of the part. A part that logged in with its own secret may omit it."""
    reason: str = ""
    """A sentence that explains why the update failed or is pending."""
    since: float | None = None
    """The time since which the update has this outcome, in seconds since 1970."""

    def to_struct(self) -> Struct:
        found = Struct()
        found.update(
            {
                "id": self.id,
                "product": self.product,
                "version": self.version,
                "outcome": self.outcome,
                "reason": self.reason[:_MAX_REASON],
            }
        )
        if self.since is not None:
            found["since"] = self.since
        return found


def write_rollbacks(settings: Struct, products: Collection[Product]) -> None:
    """Set the products to roll back, and remove those that a configuration has set."""
    if ROLLBACK in settings.fields:
        del settings.fields[ROLLBACK]
    if products:
        settings.update({ROLLBACK: sorted(products)})


def read_rollbacks(settings: Struct) -> frozenset[Product]:
    names = settings.fields[ROLLBACK].list_value.values if ROLLBACK in settings.fields else ()
    return frozenset(
        product for product in Product if any(each.string_value == product for each in names)
    )


def parse_report(message: Struct) -> UpdateReport:
    """Parse a report. Raise InvalidRequest if it is invalid."""
    since = message.fields["since"].number_value if "since" in message.fields else 0.0
    return UpdateReport(
        _parse_choice(message, "product", Product),
        _read_text(message, "version", _MAX_VERSION, required=True),
        _parse_choice(message, "outcome", Outcome),
        _read_text(message, "id", _MAX_ID),
        _read_text(message, "reason", _MAX_REASON),
        since if 0 < since < _MAX_TIME else None,
    )


def _parse_choice(message: Struct, key: str, choices: type[Any]) -> Any:
    text = _read_text(message, key, _MAX_VERSION)
    try:
        return choices(text)
    except ValueError:
        raise InvalidRequest(
            f'{key} is "{text}"; use one of {", ".join(each.value for each in choices)}'
        ) from None


def _read_text(message: Struct, key: str, limit: int, *, required: bool = False) -> str:
    found = message.fields[key].string_value[:limit] if key in message.fields else ""
    if required and not found:
        raise InvalidRequest(f"the report has no {key}")
    return found

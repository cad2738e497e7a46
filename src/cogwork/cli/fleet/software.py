"""The software on a part: its versions, and the pending and failed updates."""

from __future__ import annotations

from typing import Any, Final

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.json_format import MessageToDict  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

HEADINGS: Final = ("SERVER", "AGENT", "UPDATE")
_PRODUCTS: Final = ("server", "agent")
_MAX_LENGTH: Final = 80


def read_software(part: pb.RobotPart) -> dict[str, dict[str, Any]]:
    """Return the cloud's data about each product; empty without an agent."""
    found = MessageToDict(part.user_supplied_info).get("software")
    if not isinstance(found, dict):
        return {}
    return {
        product: found[product] for product in _PRODUCTS if isinstance(found.get(product), dict)
    }


def software_cells(software: dict[str, dict[str, Any]]) -> tuple[str, str, str]:
    """Return the cells of a table under `HEADINGS`."""
    server, agent = (str(software.get(product, {}).get("running") or "-") for product in _PRODUCTS)
    updates = [
        text for product, found in software.items() if (text := _describe_update(product, found))
    ]
    return server, agent, "; ".join(updates) or "-"


def _describe_update(product: str, found: dict[str, Any]) -> str:
    """Return the reason why a product is not updated; empty if there is none."""
    report = found.get("last_report")
    if isinstance(report, dict) and report.get("outcome") not in ("good", None):
        outcome = str(report["outcome"]).replace("_", " ")
        reason = f": {report['reason']}" if report.get("reason") else ""
        return f"{product} {report.get('version')} {outcome}{reason}"[:_MAX_LENGTH]
    return str(found.get("hindrance") or "")[:_MAX_LENGTH]

"""The status of versions and updates, for `cogwork-agent status`."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from cogwork.agent.errors import BadState
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, load_minimums
from cogwork.agent.slots.state import ProductState, load_state
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import ProductProgress, read_progress


def read_status(layout: Layout) -> dict[str, Any]:
    try:
        state, minimums = load_state(layout.state), load_minimums(layout.minimums)
    except BadState as error:
        return {"fault": str(error)}
    progress = read_progress(layout.progress)
    return {
        "source_fault": progress.source_fault,
        "products": {
            product: _describe(
                *(layout, product, state[product], minimums.get(product)),
                progress.products.get(product),
            )
            for product in Product
        },
    }


def list_failed(layout: Layout) -> list[str]:
    """Return the failed versions. Raise BadState."""
    state = load_state(layout.state)
    return [f"{product} {version}" for product in Product for version in state[product].failed]


def format_status(status: dict[str, Any]) -> str:
    if "fault" in status:
        return str(status["fault"])
    lines = [_format(product, each) for product, each in status["products"].items()]
    if status["source_fault"]:
        lines.append(f"cannot look for updates: {status['source_fault']}")
    return "\n".join(lines)


def _describe(
    layout: Layout,
    product: Product,
    state: ProductState,
    minimum: Minimum | None,
    update: ProductProgress | None,
) -> dict[str, Any]:
    return {
        "current": layout.current_version(product),
        "installed": layout.installed(product),
        "last_good": state.last_good,
        "minimum": minimum.version if minimum is not None else None,
        "failed": {version: each.reason for version, each in state.failed.items()},
        "update": dataclasses.asdict(update) if update is not None else None,
    }


def _format(product: str, value: dict[str, Any]) -> str:
    current = value["current"] or "not installed"
    update = value["update"]
    minimum = f" (minimum {value['minimum']})" if value["minimum"] else ""
    lines = [f"{product}: {current}{minimum}"]
    if update is not None and update["phase"] != "current":
        since = datetime.fromtimestamp(update["since"]).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006
        detail = f": {update['detail']}" if update["detail"] else ""
        phase = "has failed" if update["phase"] == "failed" else f"is {update['phase']}"
        lines.append(f"  {update['version']} {phase} since {since}{detail}")
    shown = update["version"] if update is not None and update["phase"] == "failed" else None
    lines += [
        f"  {version} has failed: {why}"
        for version, why in value["failed"].items()
        if version != shown
    ]
    return "\n".join(lines)

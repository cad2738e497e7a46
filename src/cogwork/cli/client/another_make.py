"""Servers of another make: what they answer over gRPC, and what is missing because of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogwork.cli.client.http_client import Declined, NotCogwork, Unreachable, fetch_status
from cogwork.cli.terminal import EXIT_USAGE, print_error
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.versions.named_version import is_another_make

UNKNOWN = "unknown"
"""The state of a machine that lists its resources only, and of those."""


def fetch_view(address: str) -> dict[str, Any]:
    """Fetch the status over HTTP, or over gRPC from a server of another make.

    That leaves out what gRPC does not tell, and has a `version`. Raise Unreachable or Declined.
    """
    try:
        return fetch_status(address)
    except NotCogwork as error:
        # gRPC takes a moment to import.
        from cogwork.cli.client.grpc_status import fetch_grpc_status

        view = fetch_grpc_status(address, error)
        if view["version"] is not None and not is_another_make(view["version"]):
            raise  # it is ours, so its answer over HTTP is a fault
        return view


def report_missing(view: Mapping[str, Any], missing: str) -> None:
    """Say what is not known because a server is of another make."""
    if "version" in view:
        states = "states, " if view["state"] == UNKNOWN else ""
        print_error(f"this is another make of server: it does not tell {states}{missing}")


def format_version(view: Mapping[str, Any]) -> str:
    """Format the version of a server of another make; empty if it does not tell it."""
    version = view.get("version")
    if version is None:
        return ""
    words = f"server {version['platform']} {version['version']}, API {version['api_version']}"
    return replace_unprintable(words)


def report_no_history(address: str, over_http: NotCogwork) -> int:
    """Report why there is no history, and return the exit code."""
    return _report(address, over_http, "keeps no history; see its log")


def report_no_log(address: str, over_http: NotCogwork) -> int:
    """Report where the log of a server of another make is, and return the exit code."""
    return _report(
        address,
        over_http,
        "does not show its log; look where it was started, such as in its terminal or the journal",
        in_cloud=True,
    )


def _report(address: str, over_http: NotCogwork, what: str, *, in_cloud: bool = False) -> int:
    from cogwork.cli.client.grpc_status import find_cloud_part

    try:
        part = find_cloud_part(address, over_http)
    except (Declined, Unreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    hint = f", or in its cloud: cogwork fleet logs {part}" if in_cloud and part else ""
    print_error(f"this is another make of server: it {what}{hint}")
    return EXIT_USAGE

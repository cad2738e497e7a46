"""Commands for servers other than Cogwork's: the status over gRPC, and notes on missing parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogwork.cli.client.http_client import Declined, NotCogwork, Unreachable, fetch_status
from cogwork.cli.terminal import EXIT_USAGE, print_error
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.versions.named_version import is_another_make

UNKNOWN = "unknown"
"""The state of a machine and its resources if the server lists the resources without their
states."""


def fetch_view(address: str) -> dict[str, Any]:
    """Fetch the status over HTTP, or over gRPC from another server.

    A status over gRPC contains less than one over HTTP. Only a status over gRPC has a `version`.
    Raise Unreachable or Declined.
    """
    try:
        return fetch_status(address)
    except NotCogwork as error:
        # Import gRPC only if it is needed, because the import is slow.
        from cogwork.cli.client.grpc_status import fetch_grpc_status

        view = fetch_grpc_status(address, error)
        if view["version"] is not None and not is_another_make(view["version"]):
            raise  # A Cogwork server must answer over HTTP, so report the HTTP error.
        return view


def report_missing(view: Mapping[str, Any], missing: str) -> None:
    """Report the data that is missing because the server is not Cogwork's."""
    if "version" in view:
        states = "states, " if view["state"] == UNKNOWN else ""
        print_error(f"this is another make of server: it does not tell {states}{missing}")


def format_version(view: Mapping[str, Any]) -> str:
    """Format the version of another server; empty if the server does not report it."""
    version = view.get("version")
    if version is None:
        return ""
    words = f"server {version['platform']} {version['version']}, API {version['api_version']}"
    return replace_unprintable(words)


def report_no_history(address: str, over_http: NotCogwork) -> int:
    """Report the reason why there is no history, and return the exit code."""
    return _report(address, over_http, "keeps no history; see its log")


def report_no_log(address: str, over_http: NotCogwork) -> int:
    """Report where to find the log of another server, and return the exit code."""
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

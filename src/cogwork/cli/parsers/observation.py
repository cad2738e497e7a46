"""The parsers of commands that show what a machine does: `status`, `logs`, `graph` and `find`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_address_option, add_json_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_status(commands: Subparsers) -> None:
    status = commands.add_parser(
        "status",
        help="Show a machine's status",
        epilog="Exit status: 0 if every resource is ready, no process has failed and the "
        "configuration file has no errors, 1 if not or if a server of another make does not tell "
        "its states, 2 if the machine cannot be reached.",
    )
    add_address_option(status)
    add_json_option(status)
    status.add_argument(
        "--history",
        metavar="RESOURCE",
        nargs="?",
        const="",
        help="show the history of one resource, or of the whole machine",
    )
    status.set_defaults(run="cogwork.cli.status:status")


def add_logs(commands: Subparsers) -> None:
    logs = commands.add_parser("logs", help="Show a machine's log")
    add_address_option(logs)
    logs.add_argument("--level", help="minimum level: debug, info, warn or error")
    logs.add_argument(
        "--logger",
        metavar="PATTERN",
        help="show only matching loggers, e.g. 'rdk.resource_manager.*belt'",
    )
    logs.add_argument("--text", help="show only lines that contain TEXT")
    logs.add_argument(
        "--since", metavar="WHEN", help="show lines since WHEN, e.g. 10m or 2026-11-15T14:02"
    )
    logs.add_argument("-f", "--follow", action="store_true", help="wait for new lines")
    logs.add_argument("--json", action="store_true", help="print JSON lines")
    logs.set_defaults(run="cogwork.cli.logs:logs")


def add_graph(commands: Subparsers) -> None:
    graph = commands.add_parser("graph", help="Draw a machine's resource graph")
    add_address_option(graph)
    graph.add_argument(
        "--format",
        choices=("text", "dot", "svg"),
        help="output format (default: text); svg needs Graphviz",
    )
    graph.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to FILE; .dot, .svg, .png and .pdf set the format",
    )
    graph.set_defaults(run="cogwork.cli.status:graph")


def add_find(commands: Subparsers) -> None:
    find = commands.add_parser(
        "find",
        help="Find machines on the local network",
        epilog="Exit status: 0 if machines were found, 1 if none answered.",
    )
    find.add_argument(
        "--seconds",
        type=float,
        default=1.5,
        metavar="SECONDS",
        help="how long to wait for answers (default: 1.5)",
    )
    add_json_option(find)
    find.set_defaults(run="cogwork.cli.find:find")

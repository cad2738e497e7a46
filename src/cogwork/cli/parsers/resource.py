"""The parsers of commands that use a resource of a machine: `call` and `camera`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_address_option, add_json_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_call(commands: Subparsers) -> None:
    call = commands.add_parser(
        "call",
        help="Call a method of a resource and print the reply as JSON",
        epilog="Exit status: 0 if the call succeeds, 1 if it fails, 2 if it cannot be made.",
    )
    call.add_argument("resource", metavar="RESOURCE", help="resource name, e.g. belt")
    call.add_argument("method", metavar="METHOD", help="method, e.g. GetReadings or get_readings")
    call.add_argument(
        "request",
        metavar="JSON",
        nargs="?",
        default="{}",
        help="request, or - for standard input (default: {})",
    )
    call.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="deadline of the call (default: 60)",
    )
    call.add_argument(
        "--detach",
        action="store_true",
        help="leave what the call moves moving; by default the command stays while it moves, and "
        "it stops with the command",
    )
    add_address_option(call)
    call.set_defaults(run="cogwork.cli.call:call")


def add_camera(commands: Subparsers) -> None:
    camera = commands.add_parser("camera", help="Show and save a camera's images")
    subcommands = camera.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_camera_snap(subcommands)
    _add_camera_watch(subcommands)


def _add_camera_snap(commands: Subparsers) -> None:
    snap = commands.add_parser(
        "snap",
        help="Save an image to a file",
        epilog="Exit status: 0 if the image was saved, 1 if the camera has no image, 2 if the "
        "camera cannot be reached or the file cannot be written.",
    )
    snap.add_argument("name", metavar="NAME", help="camera name, e.g. belt")
    snap.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to FILE; .jpg, .png, .rgba and .dep set the type (default: NAME.jpg, or "
        "NAME.png for depth)",
    )
    snap.add_argument("--source", help="image source (default: the first color image)")
    add_json_option(snap)
    add_address_option(snap)
    snap.set_defaults(run="cogwork.cli.camera:snap")


def _add_camera_watch(commands: Subparsers) -> None:
    watch = commands.add_parser(
        "watch",
        help="Show a camera's images in the terminal until Ctrl-C",
        epilog="Keeps trying while the camera has no images or the machine is down. Exit status: "
        "0 after --seconds, 2 if the camera does not exist or the machine cannot be reached at the "
        "start, 130 after Ctrl-C.",
    )
    watch.add_argument("name", metavar="NAME", help="camera name, e.g. belt")
    watch.add_argument("--source", help="image source (default: the first color image)")
    watch.add_argument("--seconds", type=float, metavar="N", help="stop after N seconds")
    add_address_option(watch)
    watch.set_defaults(run="cogwork.cli.camera_watch:watch")

"""The argument parser of `cogwork`: every command, its arguments and the function that runs it."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from cogwork import __version__
from cogwork.cli.command_parser import CommandParser
from cogwork.cli.exit_codes import EXIT_CODES
from cogwork.core.address import parse_address, parse_port

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[CommandParser]

ADDRESS_VARIABLE = "COGWORK_ADDRESS"
_DEFAULT_PORT = 8080


def build_parser() -> CommandParser:
    parser = CommandParser(
        prog="cogwork",
        description="Configure, check and operate Cogwork machines.",
        epilog="Exit codes: "
        + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())
        + ".",
    )
    parser.add_argument("--version", action="version", version=f"cogwork {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        _add_config,
        _add_status,
        _add_logs,
        _add_graph,
        _add_call,
        _add_camera,
        _add_tunnel,
        _add_shell,
        _add_copy,
        _add_demo,
        _add_model,
        _add_module,
        _add_find,
        _add_auth,
        _add_certs,
        _add_explain,
        _add_completion,
    ):
        add(commands)
    return parser


def _add_config(commands: Subparsers) -> None:
    config = commands.add_parser("config", help="Check, compare and restore configuration files")
    subcommands = config.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_config_check(subcommands)
    _add_config_diff(subcommands)
    _add_config_history(subcommands)
    _add_config_show(subcommands)
    _add_config_restore(subcommands)
    _add_config_schema(subcommands)


def _add_config_check(commands: Subparsers) -> None:
    check = commands.add_parser(
        "check",
        help="Check a configuration file for errors",
        epilog="Exit status: 0 if the file is valid, 1 if it has errors, 2 if it cannot be read.",
    )
    check.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="machine.json",
        help="configuration file, or - for standard input (default: machine.json)",
    )
    _add_json_option(check)
    check.set_defaults(run="cogwork.cli.config:check")


def _add_config_diff(commands: Subparsers) -> None:
    diff = commands.add_parser(
        "diff",
        help="Show how a running machine would change from OLD to NEW",
        epilog="Exit status: 0 if NEW is valid, 1 if it has errors, 2 if a file cannot be read.",
    )
    diff.add_argument("old", metavar="OLD", help="current configuration file")
    diff.add_argument("new", metavar="NEW", help="new configuration file, or - for standard input")
    _add_json_option(diff)
    diff.set_defaults(run="cogwork.cli.config:diff")


def _add_config_history(commands: Subparsers) -> None:
    history = commands.add_parser(
        "history",
        help="List the configurations that a machine applied",
        epilog="Run it on the computer of the machine. Exit status: 0, or 2 if there is no "
        "history.",
    )
    _add_config_option(history)
    _add_json_option(history)
    history.set_defaults(run="cogwork.cli.config_history:history")


def _add_config_show(commands: Subparsers) -> None:
    show = commands.add_parser(
        "show",
        help="Print a configuration of the history",
        epilog="Exit status: 0, or 2 if there is no such entry.",
    )
    show.add_argument("id", metavar="ID", help="entry, as `cogwork config history` lists it")
    _add_config_option(show)
    _add_reveal_option(show)
    show.set_defaults(run="cogwork.cli.config_history:show")


def _add_config_restore(commands: Subparsers) -> None:
    restore = commands.add_parser(
        "restore",
        help="Write a configuration of the history to the file again",
        epilog="Shows the differences and asks before it writes. Exit status: 0 if the file has "
        "the text of the entry, 1 if you decline, 2 if there is no such entry or the file cannot "
        "be written.",
    )
    restore.add_argument("id", metavar="ID", help="entry, as `cogwork config history` lists it")
    restore.add_argument("-y", "--yes", action="store_true", help="do not ask")
    _add_config_option(restore)
    _add_reveal_option(restore)
    restore.set_defaults(run="cogwork.cli.config_history:restore")


def _add_config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        default="machine.json",
        help="configuration file of the server (default: machine.json)",
    )


def _add_reveal_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reveal-secrets", dest="reveal", action="store_true", help="do not mask secrets"
    )


def _add_config_schema(commands: Subparsers) -> None:
    schema = commands.add_parser("schema", help="Print the JSON Schema of the configuration file")
    schema.set_defaults(run="cogwork.cli.config:schema")


def _add_status(commands: Subparsers) -> None:
    status = commands.add_parser(
        "status",
        help="Show a machine's status",
        epilog="Exit status: 0 if every resource is ready and the configuration file has no "
        "errors, 1 if not, 2 if the machine cannot be reached.",
    )
    _add_address_option(status)
    _add_json_option(status)
    status.add_argument(
        "--history",
        metavar="RESOURCE",
        nargs="?",
        const="",
        help="show the history of one resource, or of the whole machine",
    )
    status.set_defaults(run="cogwork.cli.status:status")


def _add_logs(commands: Subparsers) -> None:
    logs = commands.add_parser("logs", help="Show a machine's log")
    _add_address_option(logs)
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


def _add_graph(commands: Subparsers) -> None:
    graph = commands.add_parser("graph", help="Draw a machine's resource graph")
    _add_address_option(graph)
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


def _add_call(commands: Subparsers) -> None:
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
    _add_address_option(call)
    call.set_defaults(run="cogwork.cli.call:call")


def _add_camera(commands: Subparsers) -> None:
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
    _add_json_option(snap)
    _add_address_option(snap)
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
    _add_address_option(watch)
    watch.set_defaults(run="cogwork.cli.camera_watch:watch")


def _add_tunnel(commands: Subparsers) -> None:
    tunnel = commands.add_parser(
        "tunnel",
        help="Forward a machine's port to this computer",
        epilog="Runs until Ctrl-C. Exit status: 2 if the tunnel does not exist or the machine "
        "cannot be reached, 130 after Ctrl-C.",
    )
    tunnel.add_argument(
        "port",
        metavar="PORT",
        nargs="?",
        type=_parse_port,
        help="port of the machine, e.g. 22; omit it to list the available ports",
    )
    tunnel.add_argument(
        "--local",
        metavar="PORT",
        type=_parse_port,
        help="local port to listen on (default: PORT, or any free port)",
    )
    tunnel.add_argument("--json", action="store_true", help="list the ports as JSON")
    _add_address_option(tunnel)
    tunnel.set_defaults(run="cogwork.cli.tunnel:tunnel")


def _add_shell(commands: Subparsers) -> None:
    shell = commands.add_parser(
        "shell",
        help="Open a shell on a machine",
        epilog="Exit status: 0 when the shell exits or Ctrl-] is pressed, 1 if the shell fails, 2 "
        "if the machine has no shell or cannot be reached.",
    )
    shell.add_argument("--name", help="shell service (default: the only one)")
    _add_address_option(shell)
    shell.set_defaults(run="cogwork.cli.shell:shell")


def _add_copy(commands: Subparsers) -> None:
    copy = commands.add_parser(
        "copy",
        help="Copy files to or from a machine",
        epilog="Write machine:PATH for a path on the machine. Exit status: 0 if all files were "
        "copied, 1 if a file cannot be copied, 2 if a file to send does not exist, or if the "
        "machine has no shell or cannot be reached.",
    )
    copy.add_argument("sources", metavar="FROM", nargs="+", help="source, e.g. notes.txt")
    copy.add_argument("destination", metavar="TO", help="destination, e.g. machine:notes.txt")
    copy.add_argument("-r", "--recursive", action="store_true", help="copy directories")
    copy.add_argument(
        "-p", "--preserve", action="store_true", help="preserve permissions and times"
    )
    copy.add_argument("--name", help="shell service (default: the only one)")
    _add_address_option(copy)
    copy.set_defaults(run="cogwork.cli.copy:copy")


def _add_demo(commands: Subparsers) -> None:
    demo = commands.add_parser(
        "demo",
        help="Run a demo machine that detects gears, bolts and nuts",
        epilog="Writes machine.json and a model next to it, and runs the machine until Ctrl-C. "
        "Exit status: 0 after --seconds, 1 if the machine fails, 2 if it cannot be started, 130 "
        "after Ctrl-C.",
    )
    demo.add_argument(
        "directory",
        metavar="DIRECTORY",
        nargs="?",
        default=".",
        help="where to write the files (default: the current directory)",
    )
    demo.add_argument(
        "--port", type=_parse_port, help="port to listen on (default: 8080, or a free port)"
    )
    demo.add_argument("--seconds", type=float, metavar="N", help="stop after N seconds")
    demo.set_defaults(run="cogwork.cli.demo:demo")


def _add_model(commands: Subparsers) -> None:
    model = commands.add_parser("model", help="Inspect model files")
    subcommands = model.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_model_show(subcommands)
    _add_model_inspect(subcommands)
    _add_model_demo(subcommands)


def _add_model_show(commands: Subparsers) -> None:
    show = commands.add_parser(
        "show",
        help="Show a model's inputs, outputs and inference time",
        epilog="Exit status: 0, 1 if the model cannot be run, 2 if the file cannot be read.",
    )
    show.add_argument("file", metavar="FILE", help="model file or SavedModel directory")
    _add_engine_option(show)
    show.add_argument("--threads", type=int, metavar="N", help="maximum number of cores per run")
    _add_json_option(show)
    show.set_defaults(run="cogwork.cli.model:show")


def _add_model_inspect(commands: Subparsers) -> None:
    inspect = commands.add_parser(
        "inspect",
        help="Show how a vision service reads a model and print its configuration",
        epilog="Exit status: 0, 1 if the model is neither a detector nor a classifier, 2 if a "
        "file cannot be read or written.",
    )
    inspect.add_argument("file", metavar="FILE", help="model file or SavedModel directory")
    inspect.add_argument("--image", metavar="FILE", help="JPEG or PNG to run the model on")
    inspect.add_argument(
        "-o", "--output", metavar="FILE", help="write the annotated image to FILE (with --image)"
    )
    inspect.add_argument("--labels", metavar="FILE", help="label file, one label per line")
    _add_engine_option(inspect)
    _add_json_option(inspect)
    inspect.set_defaults(run="cogwork.cli.model:inspect")


def _add_model_demo(commands: Subparsers) -> None:
    demo = commands.add_parser("demo", help="Write a demo detector of gears, bolts and nuts")
    demo.add_argument(
        "directory",
        metavar="DIRECTORY",
        nargs="?",
        default="demo-model",
        help="where to write the files (default: demo-model)",
    )
    demo.set_defaults(run="cogwork.cli.model:demo")


def _add_module(commands: Subparsers) -> None:
    module = commands.add_parser("module", help="Create and run modules")
    subcommands = module.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_module_new(subcommands)
    _add_module_run(subcommands)
    _add_module_restart(subcommands)


def _add_module_new(commands: Subparsers) -> None:
    new = commands.add_parser(
        "new",
        help="Create a module with a test",
        epilog="Exit status: 0 if the module was created, 2 if it cannot be written.",
    )
    new.add_argument("name", metavar="NAME", help="name of the module and its package, e.g. demo")
    new.add_argument("--directory", metavar="DIR", help="directory to create (default: NAME)")
    new.add_argument("--api", default="motor", help="API to implement (default: motor)")
    new.add_argument("--model", help="model name (default: acme:NAME:API)")
    new.set_defaults(run="cogwork.cli.module_new:new")


def _add_module_run(commands: Subparsers) -> None:
    run = commands.add_parser(
        "run",
        help="Run a module in a machine and restart it when its files change",
        epilog="Runs until Ctrl-C. Exit status: 1 if the server exits, 2 if the module does not "
        "exist or an installed package hides it, 130 after Ctrl-C.",
    )
    run.add_argument(
        "path",
        metavar="DIR|FILE",
        nargs="?",
        default=".",
        help="the module (default: the current directory)",
    )
    run.add_argument(
        "--config",
        metavar="FILE",
        help="configuration of the machine (default: DIR/machine.json, or a generated one)",
    )
    run.add_argument(
        "--port", type=_parse_port, help="port to listen on (default: 8080, or a free port)"
    )
    run.set_defaults(run="cogwork.cli.module_run:run")


def _add_module_restart(commands: Subparsers) -> None:
    restart = commands.add_parser(
        "restart",
        help="Restart a module of a running machine",
        epilog="Exit status: 0 if the module is ready, 1 if not, 2 if it is not configured or the "
        "machine cannot be reached.",
    )
    restart.add_argument("name", metavar="NAME", help="name of the module in the configuration")
    _add_json_option(restart)
    _add_address_option(restart)
    restart.set_defaults(run="cogwork.cli.module_restart:restart")


def _add_auth(commands: Subparsers) -> None:
    auth = commands.add_parser("auth", help="Manage the API keys of a machine")
    subcommands = auth.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_key = subcommands.add_parser(
        "add-key",
        help="Add an API key to a configuration file",
        epilog="The key is printed once. Exit status: 2 if the file cannot be edited.",
    )
    add_key.add_argument("file", metavar="FILE", help="configuration file of the machine")
    add_key.add_argument(
        "--role",
        choices=("owner", "operator", "viewer"),
        default="owner",
        help="what its clients may call (default: owner, everything)",
    )
    _add_json_option(add_key)
    add_key.set_defaults(run="cogwork.cli.auth:add_key")


def _add_find(commands: Subparsers) -> None:
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
    _add_json_option(find)
    find.set_defaults(run="cogwork.cli.find:find")


def _add_certs(commands: Subparsers) -> None:
    certs = commands.add_parser("certs", help="Create TLS certificates")
    subcommands = certs.add_subparsers(title="commands", required=True, metavar="COMMAND")
    local = subcommands.add_parser(
        "local",
        help="Create or renew a certificate that your own authority signs",
        epilog="Exit status: 2 if the certificate cannot be issued.",
    )
    local.add_argument(
        "names",
        metavar="NAME",
        nargs="+",
        help="host name or IP address of the machine; localhost is always included",
    )
    local.add_argument(
        "--directory",
        metavar="DIR",
        default="certs",
        help="directory of the authority and the certificate (default: certs)",
    )
    _add_json_option(local)
    local.set_defaults(run="cogwork.cli.certs:local")
    client = subcommands.add_parser(
        "client",
        help="Create or renew a certificate with which a client logs in",
        epilog="Exit status: 2 if the certificate cannot be issued.",
    )
    client.add_argument("name", metavar="NAME", help="name of the client, such as laptop.example")
    client.add_argument(
        "--directory",
        metavar="DIR",
        default="certs",
        help="directory of the authority, as `cogwork certs local` made it (default: certs)",
    )
    _add_json_option(client)
    client.set_defaults(run="cogwork.cli.certs:client")


def _add_explain(commands: Subparsers) -> None:
    explain = commands.add_parser("explain", help="Explain a diagnostic code")
    explain.add_argument(
        "code", metavar="CODE", nargs="?", help="code, e.g. E103; omit it to list all codes"
    )
    explain.set_defaults(run="cogwork.cli.explain:explain")


def _add_completion(commands: Subparsers) -> None:
    completion = commands.add_parser(
        "completion",
        help="print the script that completes commands in a shell",
    )
    completion.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="the shell you use"
    )
    # Used by the completion scripts: the words of the command line up to the cursor.
    completion.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    completion.set_defaults(run="cogwork.cli.completion:completion")


def _parse_port(text: str) -> int:
    try:
        return parse_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parse_address(text: str) -> str:
    try:
        return parse_address(text, _DEFAULT_PORT)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_engine_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("onnx_cpu", "openvino_cpu", "tensorflow_cpu", "tflite_cpu", "torch_cpu"),
        help="inference engine (default: detected from the file)",
    )


def _add_address_option(parser: argparse.ArgumentParser) -> None:
    default = f"localhost:{_DEFAULT_PORT}"
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        type=_parse_address,
        default=os.environ.get(ADDRESS_VARIABLE) or default,
        help=f"address of the machine (default: ${ADDRESS_VARIABLE}, or {default})",
    )


def _add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")

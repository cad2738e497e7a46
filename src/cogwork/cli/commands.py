"""Every command of `cogwork`, with its arguments and what runs it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cogwork import __version__

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cogwork", description="Write, check and look after machines."
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
        _add_explain,
    ):
        add(commands)
    return parser


def _add_config(commands: Commands) -> None:
    config = commands.add_parser("config", help="check, compare and describe configurations")
    parts = config.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_config_check(parts)
    _add_config_diff(parts)
    _add_config_schema(parts)


def _add_config_check(commands: Commands) -> None:
    check = commands.add_parser(
        "check",
        help="find every fault of a configuration file",
        epilog="Exits with 0 if the file is sound, 1 if it has errors, 2 if it cannot be read.",
    )
    check.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="machine.json",
        help="machine.json when left out; - for standard input",
    )
    _add_json(check)
    check.set_defaults(run="cogwork.cli.config:check")


def _add_config_diff(commands: Commands) -> None:
    diff = commands.add_parser(
        "diff",
        help="say what saving NEW over OLD does to a running machine",
        epilog="Exits with 0 if NEW is sound, 1 if it has errors, 2 if a file cannot be read.",
    )
    diff.add_argument("old", metavar="OLD", help="the configuration that runs")
    diff.add_argument("new", metavar="NEW", help="the one that is to run; - for standard input")
    _add_json(diff)
    diff.set_defaults(run="cogwork.cli.config:diff")


def _add_config_schema(commands: Commands) -> None:
    schema = commands.add_parser("schema", help="print the JSON Schema of the configuration file")
    schema.set_defaults(run="cogwork.cli.config:schema")


def _add_status(commands: Commands) -> None:
    status = commands.add_parser(
        "status",
        help="say how a running machine does",
        epilog="Exits with 0 if everything is ready, 1 if not, 2 if no machine answers.",
    )
    _add_address(status)
    _add_json(status)
    status.add_argument(
        "--history",
        metavar="RESOURCE",
        nargs="?",
        const="",
        help="say what happened, to one resource or to the whole machine",
    )
    status.set_defaults(run="cogwork.cli.status:status")


def _add_logs(commands: Commands) -> None:
    logs = commands.add_parser("logs", help="show the log of a running machine")
    _add_address(logs)
    logs.add_argument("--level", help="this level and above: debug, info, warn, error")
    logs.add_argument("--logger", metavar="PATTERN", help="such as 'rdk.resource_manager.*belt'")
    logs.add_argument("--text", help="only lines with this text")
    logs.add_argument("--since", metavar="WHEN", help="such as 10m, or 2026-11-15T14:02")
    logs.add_argument("-f", "--follow", action="store_true", help="wait for more")
    logs.add_argument("--json", action="store_true", help="print JSON lines, for programs")
    logs.set_defaults(run="cogwork.cli.logs:logs")


def _add_graph(commands: Commands) -> None:
    graph = commands.add_parser("graph", help="draw the resources of a running machine")
    _add_address(graph)
    graph.add_argument("--format", choices=("text", "dot", "svg"), help="text when left out")
    graph.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE; .svg and .dot say the format"
    )
    graph.set_defaults(run="cogwork.cli.status:graph")


def _add_call(commands: Commands) -> None:
    call = commands.add_parser(
        "call",
        help="call a method of a resource of a running machine",
        epilog="Exits with 0 and the reply as JSON, 1 if the call fails, 2 if it cannot be made.",
    )
    call.add_argument("resource", metavar="RESOURCE", help="its name, such as belt")
    call.add_argument("method", metavar="METHOD", help="such as GetReadings or get_readings")
    call.add_argument(
        "request", metavar="JSON", nargs="?", default="{}", help="the request; - for standard input"
    )
    call.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="60 when left out"
    )
    _add_address(call)
    call.set_defaults(run="cogwork.cli.call:call")


def _add_camera(commands: Commands) -> None:
    camera = commands.add_parser("camera", help="look through a camera of a running machine")
    looks = camera.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_camera_snap(looks)
    _add_camera_watch(looks)


def _add_camera_snap(commands: Commands) -> None:
    snap = commands.add_parser(
        "snap",
        help="write a picture to a file",
        epilog="Exits with 0 and the picture in the file, 1 if the camera has none, 2 if it "
        "cannot be asked or the file not be written.",
    )
    snap.add_argument("name", metavar="NAME", help="the camera, such as belt")
    snap.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to FILE; .jpg, .png, .rgba and .dep say the type; NAME.jpg when left out, "
        "NAME.png for depth",
    )
    snap.add_argument("--source", help="which of its pictures; the first in colour when left out")
    _add_json(snap)
    _add_address(snap)
    snap.set_defaults(run="cogwork.cli.camera:snap")


def _add_camera_watch(commands: Commands) -> None:
    watch = commands.add_parser(
        "watch",
        help="show what it sees in the terminal, until Ctrl-C",
        epilog="Exits with 0, or with 2 if there is no such camera or no machine answers. A camera "
        "that has no pictures, and a machine that goes, are waited for.",
    )
    watch.add_argument("name", metavar="NAME", help="the camera, such as belt")
    watch.add_argument("--source", help="which of its pictures; the first in colour when left out")
    watch.add_argument("--seconds", type=float, metavar="N", help="for so long")
    _add_address(watch)
    watch.set_defaults(run="cogwork.cli.watch:watch")


def _add_tunnel(commands: Commands) -> None:
    tunnel = commands.add_parser(
        "tunnel",
        help="reach a port of a running machine as if it were one of this computer",
        epilog="Without PORT it lists the ports that can be reached. Exits with 0 when it is ended "
        "by Ctrl-C, 2 if there is no such tunnel or no machine answers.",
    )
    tunnel.add_argument("port", metavar="PORT", nargs="?", type=_port, help="such as 22")
    tunnel.add_argument(
        "--local",
        metavar="PORT",
        type=_port,
        help="the port to listen on here; when left out the same number, or one that is free",
    )
    tunnel.add_argument("--json", action="store_true", help="list them as JSON, for programs")
    _add_address(tunnel)
    tunnel.set_defaults(run="cogwork.cli.tunnel:tunnel")


def _add_shell(commands: Commands) -> None:
    shell = commands.add_parser(
        "shell",
        help="open a shell of a running machine in this terminal",
        epilog="Exits with 0 when the shell ends or Ctrl-] is pressed, 1 if it fails, 2 if there "
        "is none or no machine answers.",
    )
    shell.add_argument("--name", help="which of its shells; the only one when left out")
    _add_address(shell)
    shell.set_defaults(run="cogwork.cli.shell:shell")


def _add_copy(commands: Commands) -> None:
    copy = commands.add_parser(
        "copy",
        help="copy files to a running machine, or from it",
        epilog="Write machine:PATH for what is on the machine. Exits with 0 and all files copied, "
        "1 if one cannot be, 2 if there is no shell or no machine answers.",
    )
    copy.add_argument("sources", metavar="FROM", nargs="+", help="such as notes.txt")
    copy.add_argument("destination", metavar="TO", help="such as machine:notes.txt")
    copy.add_argument("-r", "--recursive", action="store_true", help="directories, too")
    copy.add_argument("-p", "--preserve", action="store_true", help="keep rights and times")
    copy.add_argument("--name", help="which of its shells; the only one when left out")
    _add_address(copy)
    copy.set_defaults(run="cogwork.cli.copy:copy")


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="show gears, bolts and nuts being detected, on any computer",
        epilog="Writes machine.json and a model beside it, and runs them until Ctrl-C.",
    )
    demo.add_argument(
        "directory", metavar="DIRECTORY", nargs="?", default=".", help="here when left out"
    )
    demo.add_argument("--port", type=int, help="8080 when left out, if it is free")
    demo.add_argument("--seconds", type=float, metavar="N", help="for so long")
    demo.set_defaults(run="cogwork.cli.demo:demo")


def _add_model(commands: Commands) -> None:
    model = commands.add_parser("model", help="look into model files")
    files = model.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_model_show(files)
    _add_model_inspect(files)
    _add_model_demo(files)


def _add_model_show(commands: Commands) -> None:
    shown = commands.add_parser(
        "show",
        help="say what a model takes and gives, and how long a run takes",
        epilog="Exits with 0, or with 1 if the file cannot be run.",
    )
    shown.add_argument("file", metavar="FILE", help="a model's file, or a SavedModel folder")
    _add_engine(shown)
    shown.add_argument("--threads", type=int, metavar="N", help="cores that one run may use")
    _add_json(shown)
    shown.set_defaults(run="cogwork.cli.model:show")


def _add_model_inspect(commands: Commands) -> None:
    inspected = commands.add_parser(
        "inspect",
        help="say how a vision service reads a model, and write its configuration",
        epilog="Exits with 0, or with 1 if the model is neither a detector nor a classifier.",
    )
    inspected.add_argument("file", metavar="FILE", help="a model's file, or a SavedModel folder")
    inspected.add_argument("--image", metavar="FILE", help="a JPEG or PNG to look at")
    inspected.add_argument("-o", "--output", metavar="FILE", help="the picture with what was found")
    _add_engine(inspected)
    _add_json(inspected)
    inspected.set_defaults(run="cogwork.cli.model:inspect")


def _add_model_demo(commands: Commands) -> None:
    tried = commands.add_parser("demo", help="write a detector of gears, bolts and nuts to try")
    tried.add_argument("directory", metavar="DIRECTORY", nargs="?", default="demo-model")
    tried.set_defaults(run="cogwork.cli.model:demo")


def _add_module(commands: Commands) -> None:
    module = commands.add_parser("module", help="write modules, and try them out")
    stages = module.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_module_new(stages)
    _add_module_run(stages)
    _add_module_restart(stages)


def _add_module_new(commands: Commands) -> None:
    started = commands.add_parser(
        "new",
        help="write a module that runs, with its test",
        epilog="Exits with 0 and a folder of its own, or with 2 if it cannot be written.",
    )
    started.add_argument("name", metavar="NAME", help="such as demo; also that of the package")
    started.add_argument("--directory", metavar="DIR", help="NAME when left out")
    started.add_argument("--api", default="motor", help="motor when left out")
    started.add_argument("--model", help="such as acme:demo:motor, which is also how it is made up")
    started.set_defaults(run="cogwork.cli.module_new:new")


def _add_module_run(commands: Commands) -> None:
    tried_out = commands.add_parser(
        "run",
        help="run a module in a machine, and start it anew whenever a file of it is saved",
        epilog="Exits with 0 when it is ended by Ctrl-C, 1 if the server ends, 2 if there is no "
        "such module.",
    )
    tried_out.add_argument(
        "path", metavar="DIR|FILE", nargs="?", default=".", help="here when left out"
    )
    tried_out.add_argument(
        "--config",
        metavar="FILE",
        help="the machine; DIR/machine.json when left out, or one made for the module",
    )
    tried_out.add_argument("--port", type=_port, help="8080 when left out, if it is free")
    tried_out.set_defaults(run="cogwork.cli.module_run:run")


def _add_module_restart(commands: Commands) -> None:
    again = commands.add_parser(
        "restart",
        help="start a module of a running machine again",
        epilog="Exits with 0 when it is ready, 1 if it is not, 2 if no machine answers.",
    )
    again.add_argument("name", metavar="NAME", help="as the configuration calls it")
    again.add_argument("--json", action="store_true", help="how it went, for programs")
    _add_address(again)
    again.set_defaults(run="cogwork.cli.module_restart:restart")


def _add_explain(commands: Commands) -> None:
    explain = commands.add_parser("explain", help="say what a diagnostic code means")
    explain.add_argument("code", metavar="CODE", nargs="?", help="such as E103; all when left out")
    explain.set_defaults(run="cogwork.cli.explain:explain")


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is no port; they go from 1 to 65535")
    return port


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("onnx_cpu", "openvino_cpu", "tensorflow_cpu", "tflite_cpu", "torch_cpu"),
        help="what runs it; what the file is for when left out",
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        default="localhost:8080",
        help="where the machine listens; localhost:8080 when left out",
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")

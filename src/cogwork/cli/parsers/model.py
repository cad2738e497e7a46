"""The parsers of `cogwork demo` and `cogwork model`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_json_option, parse_port_argument

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_demo(commands: Subparsers) -> None:
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
        "--port", type=parse_port_argument, help="port to listen on (default: 8080, or a free port)"
    )
    demo.add_argument("--seconds", type=float, metavar="N", help="stop after N seconds")
    demo.set_defaults(run="cogwork.cli.demo:demo")


def add_model(commands: Subparsers) -> None:
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
    add_json_option(show)
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
    add_json_option(inspect)
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


def _add_engine_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("onnx_cpu", "openvino_cpu", "tensorflow_cpu", "tflite_cpu", "torch_cpu"),
        help="inference engine (default: detected from the file)",
    )

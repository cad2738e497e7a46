"""The commands `cogwork demo`, `cogwork models` and `cogwork model`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, SERVER_PORT, parse_address_argument
from cogwork.core.command_line import argument, command, group, option

_FILE = argument("FILE", "model file or SavedModel directory")
_ENGINE = option(
    "--engine",
    None,
    "inference engine (default: detected from the file)",
    choices=("onnx_cpu", "openvino_cpu", "tensorflow_cpu", "tflite_cpu", "torch_cpu"),
)

DEMO = command(
    "demo",
    "Run a demo machine that detects gears, bolts and nuts",
    "cogwork.cli.demo.run:demo",
    argument(
        "DIRECTORY",
        "where to write the files (default: the current directory)",
        nargs="?",
        default=".",
    ),
    SERVER_PORT,
    option("--seconds", "N", "stop after N seconds", parse=float),
    epilog="Writes machine.json and a model next to it, and runs the machine until Ctrl-C. Exit "
    "status: 0 after --seconds, 1 if the machine fails, 2 if it cannot be started, 130 after "
    "Ctrl-C.",
)
MODELS = command(
    "models",
    "List the models that a configuration can use, and their attributes",
    "cogwork.cli.models.listing:models",
    argument(
        "WORD",
        "show only models whose name, API or sentence has all these words; if it is one model, "
        "show its attributes and an example",
        dest="words",
        nargs="*",
        default=(),
    ),
    JSON,
    option(
        "--address",
        "HOST:PORT",
        "machine whose modules' models are listed, too (default: $COGWORK_ADDRESS or "
        "localhost:8080, if a machine runs there)",
        parse=parse_address_argument,
    ),
    epilog="Exit status: 0, 2 if no model matches or the machine at --address cannot be reached.",
)
MODEL = group(
    "model",
    "Inspect ML model files, such as ONNX and TensorFlow Lite",
    command(
        "show",
        "Show a model's inputs, outputs and inference time",
        "cogwork.cli.model.inspect:show",
        _FILE,
        _ENGINE,
        option("--threads", "N", "maximum number of cores per run", parse=int),
        JSON,
        epilog="Exit status: 0, 1 if the model cannot be run, 2 if the file cannot be read.",
    ),
    command(
        "inspect",
        "Show how a vision service reads a model and print its configuration",
        "cogwork.cli.model.inspect:inspect",
        _FILE,
        option("--image", "FILE", "JPEG or PNG to run the model on"),
        option("-o, --output", "FILE", "write the annotated image to FILE (with --image)"),
        option("--labels", "FILE", "label file, one label per line"),
        _ENGINE,
        JSON,
        epilog="Exit status: 0, 1 if the model is neither a detector nor a classifier, 2 if a file "
        "cannot be read or written.",
    ),
    command(
        "demo",
        "Write a demo detector of gears, bolts and nuts",
        "cogwork.cli.model.inspect:demo",
        argument(
            "DIRECTORY",
            "where to write the files (default: demo-model)",
            nargs="?",
            default="demo-model",
        ),
    ),
)

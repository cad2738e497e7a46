"""`cogwork model`: inspect model files, and write a demo model."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import shutil
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from cogwork.cli.demo.run import DEMO_MODEL
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    ProgressLine,
    print_error,
    print_json,
    print_text,
    write_picture,
)
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason, write_reason
from cogwork.graph.progress import progress_listener

_DYNAMIC_DIMENSION = -1
_MAX_LABELS = 8


class CannotRead(CogworkError):
    """A file that the command needs cannot be read."""


def show(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    try:
        _check_readable(path)
        engine = arguments.engine or detect_engine(path)
        described = _run_with_progress(
            _import_inspection(engine).describe_model(path, engine, arguments.threads)
        )
    except CogworkError as error:
        print_error(str(error))
        return EXIT_USAGE if isinstance(error, CannotRead) else EXIT_FAILURE
    if arguments.json:
        print_json(described)
    else:
        print_text("\n".join(_format_model(described)))
    return EXIT_OK


def inspect(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    image = Path(arguments.image) if arguments.image is not None else None
    labels = Path(arguments.labels) if arguments.labels is not None else None
    if arguments.output is not None and image is None:
        print_error("-o needs --image: there is no image to annotate")
        return EXIT_USAGE
    try:
        _check_readable(path, labels, image)
        engine = arguments.engine or detect_engine(path)
        inspection = _import_inspection(engine)
        described = _run_with_progress(inspection.inspect_model(path, engine, labels, image))
    except CogworkError as error:
        print_error(str(error))
        return EXIT_USAGE if isinstance(error, CannotRead) else EXIT_FAILURE
    picture = described.pop("picture")
    if picture is not None:
        file = Path(arguments.output or f"{path.stem}-boxes.jpg")
        try:
            write_picture(file, picture)
        except OSError as error:
            print_error(f"cannot write {file}: {write_reason(error)}")
            return EXIT_USAGE
        described["picture"] = str(file)
    if arguments.json:
        print_json(described)
    else:
        print_text("\n".join(_format_inspection(described)))
    return EXIT_OK if described["roles"] else EXIT_FAILURE


def demo(arguments: argparse.Namespace) -> int:
    target = Path(arguments.directory)
    try:
        shutil.copytree(DEMO_MODEL, target, dirs_exist_ok=True)
    except OSError as error:
        print_error(f"cannot write the demo model to {target}: {write_reason(error)}")
        return EXIT_USAGE
    written = ", ".join(sorted(each.name for each in DEMO_MODEL.iterdir()))
    print(f"wrote the demo model to {target}: {written}")
    return EXIT_OK


def _run_with_progress(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run the work, and show on the terminal how much of the model is loaded."""
    with ProgressLine() as line, progress_listener(line.show):
        return asyncio.run(work)


def _check_readable(model: Path, *files: Path | None) -> None:
    """Return the content of the file. Raise CannotRead."""
    for file in (model, *files):
        try:
            if file is not None and not (file is model and file.is_dir()):
                file.open("rb").close()
        except OSError as error:
            raise CannotRead(f"cannot read {file}: {os_reason(error)}") from error


def detect_engine(path: Path) -> str:
    """Detect the engine from the file's content where possible, rather than its name."""
    if path.is_dir() or path.suffix == ".keras":
        return "tensorflow_cpu"
    if path.suffix == ".xml":
        return "openvino_cpu"
    with path.open("rb") as file:
        start = file.read(8)
    if start[4:] == b"TFL3":
        return "tflite_cpu"
    return "torch_cpu" if start.startswith(b"PK") else "onnx_cpu"


def _import_inspection(engine: str) -> ModuleType:
    """Import the inspection lazily: it requires NumPy, which is installed with an engine."""
    try:
        return importlib.import_module("cogwork.cli.model.inspection")
    except ImportError as error:
        extra = engine.removesuffix("_cpu")
        raise CogworkError(
            f"{engine} is not installed ({error}); run: pip install 'cogwork[{extra}]'"
        ) from error


def _format_inspection(described: dict[str, Any]) -> Iterator[str]:
    yield f"{described['file']}, run by {described['engine']}"
    for word in ("inputs", "outputs"):
        for tensor in described[word]:
            yield f"  {word[:-1]:12} {_format_tensor(tensor)}"
    for role, reading in described["roles"].items():
        yield f"  {role:12} yes: {reading['family']}"
        yield from (f"  {'':12} {sentence}" for sentence in reading["assumed"])
    for role, reasons in described["refused"].items():
        yield f"  {role:12} no: {'; '.join(reasons)}"
    if described["input"]:
        yield f"  {'preprocess':12} {described['input']['summary']}"
    if described["roles"] and not described["labels"]:
        yield f"  {'labels':12} none: results have class numbers; pass a label file with --labels"
    if described["found"] is not None:
        if not described["found"]:
            least = described["minimum_confidence"]
            yield f"  {'found':12} nothing with a confidence of at least {least}"
        for each in described["found"]:
            where = f" at {each['box']}" if "box" in each else ""
            yield f"  {'found':12} {each['label']} {each['confidence']:.2f}{where}"
        yield f"  {'image':12} {described['picture']}"
    if described["entry"] is not None:
        yield "Add this to machine.json:"
        yield json.dumps(described["entry"], indent=2)


def _format_model(described: dict[str, Any]) -> Iterator[str]:
    size = described["bytes"] / 1e6
    yield f"{described['file']}: {described['kind']}, {size:.1f} MB, run by {described['engine']}"
    for word in ("name", "description"):
        if described[word]:
            yield f"  {word:12} {described[word]}"
    for word in ("inputs", "outputs"):
        for tensor in described[word]:
            yield f"  {word[:-1]:12} {_format_tensor(tensor)}"
    if described["labels"]:
        yield f"  {'labels':12} {_format_labels(described['labels'])}"
    for key, value in described["notes"].items():
        yield f"  {key:12} {value}"
    yield f"  {'loaded in':12} {described['load_seconds']:.2f} s"
    if described["runs"]:
        runs, median = described["runs"], described["run_seconds"] * 1e3
        yield f"  {'inference':12} {median:.1f} ms (median of {runs} runs on zeros)"
    else:
        yield f"  {'not run':12} {described['problem']}"


def _format_tensor(tensor: dict[str, Any]) -> str:
    shape = tensor["shape"]
    extents = (
        "any shape"
        if shape is None
        else "x".join("?" if e == _DYNAMIC_DIMENSION else str(e) for e in shape)
    )
    line = f"{tensor['name']}  {tensor['data_type']} {extents or 'scalar'}"
    if "quantization" in tensor:
        quantization = tensor["quantization"]
        line += f", quantized: {quantization['scale']:g} x (value - {quantization['zero_point']})"
    return line


def _format_labels(labels: list[str]) -> str:
    shown = ", ".join(labels[:_MAX_LABELS])
    more = len(labels) - _MAX_LABELS
    return f"{shown}, and {more} more" if more > 0 else shown

"""`cogwork model`: what a model file is, before a machine runs it; and a model to try."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from cogwork.cli.demo import DEMO_MODEL
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, print_json, write_picture
from cogwork.core.errors import CogworkError

_OPEN = -1
_MOST_LABELS = 8


def show(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    try:
        engine = arguments.engine or engine_for(path)
        described = asyncio.run(_inspection_of(engine).shown(path, engine, arguments.threads))
    except CogworkError as error:
        complain(str(error))
        return FAULTS
    if arguments.json:
        print_json(described)
    else:
        print("\n".join(_lines(described)))
    return FINE


def inspect(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    image = Path(arguments.image) if arguments.image is not None else None
    try:
        engine = arguments.engine or engine_for(path)
        described = asyncio.run(_inspection_of(engine).inspected(path, engine, image))
    except CogworkError as error:
        complain(str(error))
        return FAULTS
    picture = described.pop("picture")
    if picture is not None:
        file = Path(arguments.output or f"{path.stem}-boxes.jpg")
        try:
            write_picture(file, picture)
        except OSError as error:
            complain(f"cannot write {file}: {error.strerror}")
            return USAGE
        described["picture"] = str(file)
    if arguments.json:
        print_json(described)
    else:
        print("\n".join(_inspection(described)))
    return FINE if described["roles"] else FAULTS


def demo(arguments: argparse.Namespace) -> int:
    target = Path(arguments.directory)
    try:
        shutil.copytree(DEMO_MODEL, target, dirs_exist_ok=True)
    except OSError as error:
        complain(f"the demo model cannot be written to {target}: {error.strerror or error}")
        return USAGE
    written = ", ".join(sorted(each.name for each in DEMO_MODEL.iterdir()))
    print(f"wrote the demo model to {target}: {written}")
    return FINE


def engine_for(path: Path) -> str:
    """By what the file is, not by what it is called."""
    if path.is_dir() or path.suffix == ".keras":
        return "tensorflow_cpu"
    if path.suffix == ".xml":
        return "openvino_cpu"
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise CogworkError(f"{path} cannot be read: {error.strerror}") from error
    if start[4:] == b"TFL3":
        return "tflite_cpu"
    return "torch_cpu" if start.startswith(b"PK") else "onnx_cpu"


def _inspection_of(engine: str) -> ModuleType:
    """Imported when it is used: it stands on NumPy, which comes with an engine."""
    try:
        return importlib.import_module("cogwork.cli.inspection")
    except ImportError as error:
        extra = engine.removesuffix("_cpu")
        raise CogworkError(
            f"{engine} is not installed ({error}): `pip install 'cogwork[{extra}]'`"
        ) from error


def _inspection(described: dict[str, Any]) -> Iterator[str]:
    yield f"{described['file']}, run by {described['engine']}"
    for word in ("inputs", "outputs"):
        for tensor in described[word]:
            yield f"  {word[:-1]:12} {_tensor_line(tensor)}"
    for role, reading in described["roles"].items():
        yield f"  {role:12} yes: {reading['family']}"
        yield from (f"  {'':12} {sentence}" for sentence in reading["assumed"])
    for role, reasons in described["refused"].items():
        yield f"  {role:12} no: {'; '.join(reasons)}"
    if described["input"]:
        yield f"  {'pictures':12} {_pictures(described['input'])}"
    if described["found"] is not None:
        for each in described["found"]:
            where = f" at {each['box']}" if "box" in each else ""
            yield f"  {'found':12} {each['label']} {each['confidence']:.2f}{where}"
        yield f"  {'picture':12} {described['picture']}"
    if described["entry"] is not None:
        yield "Put this into machine.json:"
        yield json.dumps(described["entry"], indent=2)


def _pictures(plan: dict[str, Any]) -> str:
    size = f"{plan['width'] or '?'}x{plan['height'] or '?'}"
    fitted = "in their own shape" if plan["letterbox"] else "stretched"
    words = [size, fitted, plan["layout"], "blue first" if plan["bgr"] else "red first"]
    if plan["data_type"].startswith("float"):
        words.append(f"minus {plan['mean']}, divided by {plan['std']}")
    return ", ".join(words)


def _lines(described: dict[str, Any]) -> Iterator[str]:
    size = described["bytes"] / 1e6
    yield f"{described['file']}: {described['kind']}, {size:.1f} MB, run by {described['engine']}"
    for word in ("name", "description"):
        if described[word]:
            yield f"  {word:12} {described[word]}"
    for word in ("inputs", "outputs"):
        for tensor in described[word]:
            yield f"  {word[:-1]:12} {_tensor_line(tensor)}"
    if described["labels"]:
        yield f"  {'labels':12} {_listed(described['labels'])}"
    for key, value in described["notes"].items():
        yield f"  {key:12} {value}"
    yield f"  {'loaded in':12} {described['load_seconds']:.2f} s"
    if described["runs"]:
        runs, median = described["runs"], described["run_seconds"] * 1e3
        yield f"  {'one run':12} {median:.1f} ms (the median of {runs}, on zeros)"
    else:
        yield f"  {'not run':12} {described['problem']}"


def _tensor_line(tensor: dict[str, Any]) -> str:
    shape = tensor["shape"]
    extents = (
        "any shape" if shape is None else "x".join("?" if e == _OPEN else str(e) for e in shape)
    )
    line = f"{tensor['name']}  {tensor['data_type']} {extents or 'scalar'}"
    if "quantization" in tensor:
        quantisation = tensor["quantization"]
        line += f", quantised: {quantisation['scale']:g} x (value - {quantisation['zero_point']})"
    return line


def _listed(labels: list[str]) -> str:
    shown = ", ".join(labels[:_MOST_LABELS])
    more = len(labels) - _MOST_LABELS
    return f"{shown}, and {more} more" if more > 0 else shown

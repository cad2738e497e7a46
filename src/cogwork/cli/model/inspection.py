"""Description of a model file, its inference time, and its use by a vision service."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from cogwork.core.errors import CogworkError
from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.model import Model

_API = Api.parse("rdk:service:mlmodel")
_DEFAULT_IMAGE_SIDE = 320
"""Width and height of the trial image for models with dynamic input size."""
_TIMING_SECONDS = 1.0
_MAX_RUNS = 50


async def inspect_model(
    path: Path, engine: str, labels: Path | None, image: Path | None
) -> dict[str, Any]:
    """Describe how a vision service reads the model. Raise CogworkError.

    All values are JSON values except `picture`, which is a JPEG.
    """
    from cogwork.cli.model.vision_inspection import inspect_vision

    resource: Any = await _construct(_find_model(engine), path, label_path=labels)
    try:
        info: ModelInfo = resource.info
        return {
            "file": str(path),
            "engine": engine,
            "inputs": [_describe_tensor(each) for each in info.inputs],
            "outputs": [_describe_tensor(each) for each in info.outputs],
            **await inspect_vision(resource, path, engine, labels, image),
        }
    finally:
        await resource.close()


async def describe_model(path: Path, engine: str, threads: int | None) -> dict[str, Any]:
    """Describe the model and time a run, as JSON values. Raise CogworkError."""
    start = time.perf_counter()
    resource: Any = await _construct(_find_model(engine), path, threads=threads)
    try:
        loaded = time.perf_counter() - start
        info: ModelInfo = resource.info
        labels = resource.labels
        return {
            "file": str(path),
            "engine": engine,
            "kind": info.kind,
            "bytes": (await resource.get_status())["bytes"],
            "name": info.name,
            "description": info.description,
            "inputs": [_describe_tensor(each) for each in info.inputs],
            "outputs": [_describe_tensor(each) for each in info.outputs],
            "labels": [labels.get(n) or str(n) for n in range(len(labels))] if labels else [],
            "notes": dict(info.properties),
            "load_seconds": loaded,
            **await _time_runs(resource, info),
        }
    finally:
        await resource.close()


def _find_model(engine: str) -> Model:
    return next(each for each in builtin_models() if (each.api, each.name.short) == (_API, engine))


async def _construct(
    model: Model, path: Path, *, threads: int | None = None, label_path: Path | None = None
) -> object:
    wanted: dict[str, Any] = {"model_path": str(path), "num_threads": threads}
    if label_path is not None:
        wanted["label_path"] = str(label_path)
    try:
        attributes = model.load_attributes().model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        raise CogworkError(f"{first['loc'][0]}: {first['msg']}") from error
    return await model.construct(ResourceName(_API, "shown"), attributes, {})


async def _time_runs(resource: Any, info: ModelInfo) -> dict[str, Any]:
    """Time runs on zeros, because inference time hardly depends on the values."""
    if any(each.shape is None for each in info.inputs):
        return {"runs": 0, "problem": "the file does not describe its inputs"}
    tensors = {each.name: np.zeros(_trial_shape(each), each.dtype) for each in info.inputs}
    times: list[float] = []
    begin = time.perf_counter()
    try:
        outputs = await resource.infer(tensors)  # the first run is a warm-up
        while not times or (
            time.perf_counter() - begin < _TIMING_SECONDS and len(times) < _MAX_RUNS
        ):
            start = time.perf_counter()
            await resource.infer(tensors)
            times.append(time.perf_counter() - start)
    except CogworkError as error:
        return {"runs": 0, "problem": str(error)}
    return {
        "runs": len(times),
        "run_seconds": statistics.median(times),
        "tried": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "gave": {name: list(tensor.shape) for name, tensor in outputs.items()},
    }


def _trial_shape(tensor: TensorSpec) -> list[int]:
    shape = tensor.shape or ()
    last = len(shape) - 1
    channels = {1: shape[1] in (1, 3, 4), last: shape[last] in (1, 3, 4)} if len(shape) == 4 else {}
    sides = {2, 3} if channels.get(1) else {1, 2}
    return [
        extent if extent != DYNAMIC else _DEFAULT_IMAGE_SIDE if channels and place in sides else 1
        for place, extent in enumerate(shape)
    ]


def _describe_tensor(tensor: TensorSpec) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": tensor.name,
        "data_type": tensor.dtype.name,
        "shape": list(tensor.shape) if tensor.shape is not None else None,
    }
    if tensor.quantization is not None:
        scale, zero = tensor.quantization.scale, tensor.quantization.zero_point
        described["quantization"] = {"scale": scale, "zero_point": zero}
    return described

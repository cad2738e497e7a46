"""What there is to know of a model file: what it is, and how a vision service would read it."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.drivers.table import builtin_models
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.model import Model

_API = Api.parse("rdk:service:mlmodel")
_OPEN_SIDE = 320
"""What the width and the height of a picture are tried with where a model leaves them open."""
_SECONDS = 1.0
_MOST_RUNS = 50


async def inspected(path: Path, engine: str, image: Path | None) -> dict[str, Any]:
    """How a vision service would read it; plain values beside `picture`. Raises CogworkError."""
    from cogwork.cli.role_call import role_call

    resource: Any = await _constructed(_model(engine), path, None)
    try:
        facts: ModelFacts = resource.facts
        return {
            "file": str(path),
            "engine": engine,
            "inputs": [_tensor(each) for each in facts.inputs],
            "outputs": [_tensor(each) for each in facts.outputs],
            **await role_call(resource, path, engine, image),
        }
    finally:
        await resource.close()


async def shown(path: Path, engine: str, threads: int | None) -> dict[str, Any]:
    """What it is, with a timed run; plain values. Raises CogworkError."""
    start = time.perf_counter()
    resource: Any = await _constructed(_model(engine), path, threads)
    try:
        loaded = time.perf_counter() - start
        facts: ModelFacts = resource.facts
        labels = resource.labels
        return {
            "file": str(path),
            "engine": engine,
            "kind": facts.kind,
            "bytes": (await resource.get_status())["bytes"],
            "name": facts.name,
            "description": facts.description,
            "inputs": [_tensor(each) for each in facts.inputs],
            "outputs": [_tensor(each) for each in facts.outputs],
            "labels": [labels.get(n) or str(n) for n in range(len(labels))] if labels else [],
            "notes": dict(facts.notes),
            "load_seconds": loaded,
            **await _timed(resource, facts),
        }
    finally:
        await resource.close()


def _model(engine: str) -> Model:
    return next(each for each in builtin_models() if (each.api, each.name.short) == (_API, engine))


async def _constructed(model: Model, path: Path, threads: int | None) -> object:
    wanted = {"model_path": str(path), "num_threads": threads}
    try:
        attributes = model.attributes.model_validate(wanted)
    except ValidationError as error:
        fault = error.errors()[0]
        raise CogworkError(f"{fault['loc'][0]}: {fault['msg']}") from error
    return await model.construct(ResourceName(_API, "shown"), attributes, {})


async def _timed(resource: Any, facts: ModelFacts) -> dict[str, Any]:
    """On zeros: the time a run takes hardly depends on the values."""
    if any(each.shape is None for each in facts.inputs):
        return {"runs": 0, "problem": "the file does not say what its inputs look like"}
    tensors = {each.name: np.zeros(_tried(each), each.dtype) for each in facts.inputs}
    times: list[float] = []
    begin = time.perf_counter()
    try:
        outputs = await resource.infer(tensors)  # warms up
        while not times or (time.perf_counter() - begin < _SECONDS and len(times) < _MOST_RUNS):
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


def _tried(tensor: TensorFacts) -> list[int]:
    shape = tensor.shape or ()
    last = len(shape) - 1
    channels = {1: shape[1] in (1, 3, 4), last: shape[last] in (1, 3, 4)} if len(shape) == 4 else {}
    sides = {2, 3} if channels.get(1) else {1, 2}
    return [
        extent if extent != ANY else _OPEN_SIDE if channels and place in sides else 1
        for place, extent in enumerate(shape)
    ]


def _tensor(tensor: TensorFacts) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": tensor.name,
        "data_type": tensor.dtype.name,
        "shape": list(tensor.shape) if tensor.shape is not None else None,
    }
    if tensor.quantisation is not None:
        scale, zero = tensor.quantisation.scale, tensor.quantisation.zero_point
        described["quantization"] = {"scale": scale, "zero_point": zero}
    return described

"""Cost of a complete GetDetectionsFromCamera call, relative to its inference.

A detector of about the size of a small YOLO runs on 1280x720 images with one engine thread. Each
call is divided by the `session.run` inside the same call, which the service reports in its status
and the bare server in its reply. Interleaved:

- ours: the call over gRPC on the public port, with the camera in the same process (`frame`) or one
  that returns JPEGs (`jpeg`);
- in process: the same pipeline called without a server;
- bare: a hand-written grpc.aio server with the same pipeline.

Also measures four concurrent callers, relative to four threads with the bare engine.

    python -m benchmarks.vision [--rounds 40]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from benchmarks.parts.detector_model import make_network
from benchmarks.parts.server_process import running_server
from benchmarks.parts.static_camera import HEIGHT, WIDTH, install_entry_point

SIZES = (320, 640)
CALLERS = 4
AIMS = {("frame", 640): 1.08, ("jpeg", 640): 1.15, ("frame", 320): 1.20, ("jpeg", 320): 1.40}
MIN_THROUGHPUT = 0.85
MIN_CONFIDENCE = 0.25
_VISION = "/viam.service.vision.v1.VisionService"


class CallTiming(NamedTuple):
    whole: float
    infer: float

    @property
    def ratio(self) -> float:
        return self.whole / self.infer


Call = Callable[[], Awaitable[CallTiming]]


def main() -> int:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="duration of each throughput measurement"
    )
    parser.add_argument("--bare", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    import uvloop

    if arguments.bare:
        return uvloop.run(_run_bare_server(arguments.bare))
    with tempfile.TemporaryDirectory() as directory:
        kept = [
            uvloop.run(_measure_size(Path(directory), size, arguments.rounds, arguments.seconds))
            for size in SIZES
        ]
    return 0 if all(kept) else 1


def build_config(model: str) -> dict[str, Any]:
    camera = "rdk:component:camera"
    return {
        "network": {"bind_address": "localhost:0"},
        "components": [
            {"name": name, "api": camera, "model": "cogwork:bench:eye", "attributes": {}}
            for name in ("frame", *(f"frame{number}" for number in range(CALLERS)))
        ],
        "services": [
            {
                "name": "model",
                "api": "rdk:service:mlmodel",
                "model": "onnx_cpu",
                "attributes": {"model_path": model, "num_threads": 1},
            },
            {
                "name": "eyes",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {
                    "mlmodel_name": "model",
                    "letterbox": False,
                    # As in the bare server. Otherwise, a thousand rows would be reported.
                    "default_minimum_confidence": MIN_CONFIDENCE,
                },
            },
        ],
    }


async def _measure_size(directory: Path, size: int, rounds: int, seconds: float) -> bool:
    import grpc.aio

    model = make_network(directory / f"{size}.onnx", size, "float32")
    (directory / str(size)).mkdir()
    photo = directory / "photo.jpg"
    pixels = _render_image()
    cv2.imwrite(str(photo), pixels, (cv2.IMWRITE_JPEG_QUALITY, 90))
    options = [("grpc.max_receive_message_length", -1)]
    with (
        running_server(build_config(model), "eyes", install_entry_point(directory / str(size))) as (
            address,
            process,
        ),
        _start_bare_server(model) as bare_address,
    ):
        async with (
            grpc.aio.insecure_channel(address, options) as channel,
            grpc.aio.insecure_channel(bare_address, options) as bare_channel,
        ):
            pipeline = await _create_pipeline(model)
            ways: dict[str, Call] = {
                "ours, frame": lambda: _call_server(channel, "GetDetectionsFromCamera", b""),
                "ours, jpeg": lambda: _call_server(channel, "GetDetections", photo.read_bytes()),
                "in process": lambda: _call_in_process(pipeline, pixels),
                "bare, frame": lambda: _call_bare_server(bare_channel, b""),
                "bare, jpeg": lambda: _call_bare_server(bare_channel, photo.read_bytes()),
            }
            times = await _measure_interleaved(ways, rounds)
            faults = await _measure_page_faults(channel, process.pid)
            throughput = await _measure_throughput(channel, model, pixels, seconds)
            await pipeline.close()
    return print_report(size, times, faults, throughput)


def print_report(
    size: int, times: dict[str, list[CallTiming]], faults: float, throughput: float
) -> bool:
    infer = statistics.median(each.infer for each in times["ours, frame"])
    print(f"{size}x{size}: session.run takes {infer * 1e3:.1f} ms")
    kept = throughput >= MIN_THROUGHPUT
    for way, taken in times.items():
        ratio = statistics.median(each.ratio for each in taken)
        aim = AIMS.get((way.removeprefix("ours, "), size)) if way.startswith("ours") else None
        kept = kept and (aim is None or ratio <= aim)
        wanted = f"(at most {aim})" if aim else ""
        print(f"  {way:12} {ratio:5.2f} of the inference inside it {wanted}")
    whole = {way: statistics.median(e.whole for e in taken) for way, taken in times.items()}
    ratio = whole["ours, jpeg"] / whole["ours, frame"]
    print(f"  a call with an image takes {ratio:.2f} of a call that names the camera")
    print(
        f"  {CALLERS} callers: {throughput:.2f} of the bare engine (at least {MIN_THROUGHPUT}); "
        f"{faults:.1f} page faults per call",
        flush=True,
    )
    return kept


async def _measure_interleaved(ways: dict[str, Call], rounds: int) -> dict[str, list[CallTiming]]:
    times: dict[str, list[CallTiming]] = {way: [] for way in ways}
    for number in range(rounds + 4):
        for way in sorted(ways, reverse=bool(number % 2)):
            timed = await ways[way]()
            if number >= 4:  # the first rounds are warm-up
                times[way].append(timed)
    return times


async def _call_server(channel: Any, method: str, image: bytes) -> CallTiming:
    from viam.gen.common.v1 import common_pb2 as common
    from viam.gen.service.vision.v1 import vision_pb2 as vision

    if image:
        message: Any = vision.GetDetectionsRequest(name="eyes", image=image)
    else:
        message = vision.GetDetectionsFromCameraRequest(name="eyes", camera_name="frame")
    request = message.SerializeToString()
    call = channel.unary_unary(f"{_VISION}/{method}")
    start = time.perf_counter()
    await call(request)
    whole = time.perf_counter() - start
    status = channel.unary_unary(
        f"{_VISION}/GetStatus", response_deserializer=common.GetStatusResponse.FromString
    )
    reply = await status(common.GetStatusRequest(name="eyes").SerializeToString())
    return CallTiming(whole, reply.result["last_milliseconds"]["infer"] / 1e3)


async def _create_pipeline(model: str) -> Any:
    """Create our service without a server."""
    from cogwork.core.clock import SystemClock
    from cogwork.drivers.mlmodel.attributes import OnnxAttributes
    from cogwork.drivers.mlmodel.model_cache import ModelCache
    from cogwork.drivers.mlmodel.onnx import OnnxModel
    from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
    from cogwork.drivers.vision.mlmodel import MlmodelVision
    from cogwork.graph.name import Api, ResourceName

    name = ResourceName(Api.parse("rdk:service:mlmodel"), "model")
    attributes = OnnxAttributes(model_path=model, num_threads=1)
    loaded = await OnnxModel.new(name, attributes, {}, ModelCache(SystemClock()))
    settings = MlmodelVisionAttributes(
        mlmodel_name="model", letterbox=False, default_minimum_confidence=MIN_CONFIDENCE
    )
    eyes = ResourceName(Api.parse("rdk:service:vision"), "eyes")
    return await MlmodelVision.new(eyes, settings, {name: loaded})


async def _call_in_process(pipeline: Any, pixels: Any) -> CallTiming:
    from cogwork.resource.frame import Frame, Image

    frame = Frame(Image(pixels, pipeline.workers), time.time())
    start = time.perf_counter()
    await pipeline.detect_in_frame(frame)
    whole = time.perf_counter() - start
    status = await pipeline.get_status()
    return CallTiming(whole, status["last_milliseconds"]["infer"] / 1e3)


async def _call_bare_server(channel: Any, image: bytes) -> CallTiming:
    call = channel.unary_unary("/bare/Detect")
    start = time.perf_counter()
    reply = await call(image)
    whole = time.perf_counter() - start
    return CallTiming(whole, float(reply.partition(b" ")[0]))


async def _measure_page_faults(channel: Any, pid: int) -> float:
    """Return the server's page faults per call in steady state."""
    calls = 50
    before = _read_page_faults(pid)
    for _ in range(calls):
        await _call_server(channel, "GetDetectionsFromCamera", b"")
    return (_read_page_faults(pid) - before) / calls


def _read_page_faults(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


async def _measure_throughput(channel: Any, model: str, pixels: Any, seconds: float) -> float:
    session = _create_session(model)
    size = session.get_inputs()[0].shape[2]
    tensor = np.ascontiguousarray(
        cv2.resize(pixels, (size, size)).transpose(2, 0, 1)[None].astype("f4") / 255
    )
    ratios = []
    for _ in range(3):
        theirs = await asyncio.to_thread(_measure_bare_rate, session, tensor, seconds / 3)
        ratios.append(await _measure_service_rate(channel, seconds / 3) / theirs)
    return statistics.median(ratios)


async def _measure_service_rate(channel: Any, seconds: float) -> float:
    """Give each caller its own camera, because callers of one camera share an inference."""
    from viam.gen.service.vision.v1 import vision_pb2 as vision

    call = channel.unary_unary(f"{_VISION}/GetDetectionsFromCamera")
    start, inferred = time.perf_counter(), await _count_inferences(channel)

    async def ask(camera: str) -> None:
        request = vision.GetDetectionsFromCameraRequest(name="eyes", camera_name=camera)
        data = request.SerializeToString()
        while time.perf_counter() - start < seconds:
            await call(data)

    await asyncio.gather(*(ask(f"frame{number}") for number in range(CALLERS)))
    took = time.perf_counter() - start
    return (await _count_inferences(channel) - inferred) / took


async def _count_inferences(channel: Any) -> float:
    from viam.gen.common.v1 import common_pb2 as common

    status = channel.unary_unary(
        f"{_VISION}/GetStatus", response_deserializer=common.GetStatusResponse.FromString
    )
    reply = await status(common.GetStatusRequest(name="eyes").SerializeToString())
    return float(reply.result["pictures"])


def _measure_bare_rate(session: Any, tensor: Any, seconds: float) -> float:
    counts, start = [0] * CALLERS, time.perf_counter()

    def ask(number: int) -> None:
        while time.perf_counter() - start < seconds:
            session.run(None, {"images": tensor})
            counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def _render_image() -> Any:
    from cogwork.drivers.camera.conveyor import Conveyor

    conveyor = Conveyor(seed=3, width=WIDTH, height=HEIGHT)
    return conveyor.render(conveyor.scene_at(4.0))[0]


def _create_session(model: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@contextmanager
def _start_bare_server(model: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.vision", "--bare", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def _run_bare_server(model: str) -> int:
    """Run a hand-written server: decode, resize, normalize and run in a thread."""
    import grpc
    import grpc.aio

    from cogwork.core.malloc import tune_malloc

    tune_malloc()
    session = _create_session(model)
    size = session.get_inputs()[0].shape[2]
    frame = _render_image()

    def detect(image: bytes) -> bytes:
        pixels: Any = frame
        if image:
            pixels = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR)
        tensor = cv2.dnn.blobFromImage(pixels, 1 / 255, (size, size), swapRB=True)
        start = time.perf_counter()
        [output] = session.run(None, {"images": tensor})
        infer = time.perf_counter() - start
        best = output[0, 4:].max(0)
        return f"{infer} {int((best > MIN_CONFIDENCE).sum())}".encode()

    async def answer(image: bytes, _: object) -> bytes:
        return await asyncio.to_thread(detect, image)

    handler = grpc.method_handlers_generic_handler(
        "bare", {"Detect": grpc.unary_unary_rpc_method_handler(answer)}
    )
    running = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    running.add_generic_rpc_handlers((handler,))
    port = running.add_insecure_port("127.0.0.1:0")
    await running.start()
    print(port, flush=True)
    await running.wait_for_termination()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

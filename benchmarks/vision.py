"""What a whole GetDetectionsFromCamera costs over the inference inside it.

A detector of about the weight of a small YOLO looks at 1280x720 pictures, one engine thread. Each
call is divided by the `session.run` inside that very call: the service tells it in its status, a
bare server in its reply. In turns:

- ours: the call over gRPC on the public port, the camera in the same process (`frame`) or one that
  hands over JPEGs (`jpeg`);
- in process: the same pipeline called without a server;
- bare: a hand-written grpc.aio server with the same pipeline.

And four callers at once, divided by what four threads get out of the bare engine.

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
from benchmarks.parts.executable import server
from benchmarks.parts.eye import HEIGHT, WIDTH, plug_in
from benchmarks.parts.network import make_network

SIZES = (320, 640)
CALLERS = 4
AIMS = {("frame", 640): 1.08, ("jpeg", 640): 1.15, ("frame", 320): 1.20, ("jpeg", 320): 1.40}
LEAST_THROUGHPUT = 0.85
_VISION = "/viam.service.vision.v1.VisionService"


class Timed(NamedTuple):
    whole: float
    infer: float

    @property
    def ratio(self) -> float:
        return self.whole / self.infer


Look = Callable[[], Awaitable[Timed]]


def main() -> int:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=6.0, help="of four callers, each way")
    parser.add_argument("--bare", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    import uvloop

    if arguments.bare:
        return uvloop.run(_bare_server(arguments.bare))
    with tempfile.TemporaryDirectory() as directory:
        kept = [
            uvloop.run(_measured(Path(directory), size, arguments.rounds, arguments.seconds))
            for size in SIZES
        ]
    return 0 if all(kept) else 1


def machine(model: str) -> dict[str, Any]:
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
                "attributes": {"mlmodel_name": "model", "letterbox": False},
            },
        ],
    }


async def _measured(directory: Path, size: int, rounds: int, seconds: float) -> bool:
    import grpc.aio

    model = make_network(directory / f"{size}.onnx", size, "float32")
    (directory / str(size)).mkdir()
    photo = directory / "photo.jpg"
    pixels = _picture()
    cv2.imwrite(str(photo), pixels, (cv2.IMWRITE_JPEG_QUALITY, 90))
    options = [("grpc.max_receive_message_length", -1)]
    with (
        server(machine(model), "eyes", plug_in(directory / str(size))) as (address, process),
        _bare(model) as bare_address,
    ):
        async with (
            grpc.aio.insecure_channel(address, options) as channel,
            grpc.aio.insecure_channel(bare_address, options) as bare_channel,
        ):
            pipeline = await _pipeline(model)
            ways: dict[str, Look] = {
                "ours, frame": lambda: _ours(channel, "GetDetectionsFromCamera", b""),
                "ours, jpeg": lambda: _ours(channel, "GetDetections", photo.read_bytes()),
                "in process": lambda: _in_process(pipeline, pixels),
                "bare, frame": lambda: _bare_call(bare_channel, b""),
                "bare, jpeg": lambda: _bare_call(bare_channel, photo.read_bytes()),
            }
            times = await _in_turns(ways, rounds)
            faults = await _page_faults(channel, process.pid)
            throughput = await _throughput(channel, model, pixels, seconds)
            await pipeline.close()
    return show(size, times, faults, throughput)


def show(size: int, times: dict[str, list[Timed]], faults: float, throughput: float) -> bool:
    infer = statistics.median(each.infer for each in times["ours, frame"])
    print(f"{size}x{size}: session.run takes {infer * 1e3:.1f} ms")
    kept = throughput >= LEAST_THROUGHPUT
    for way, taken in times.items():
        ratio = statistics.median(each.ratio for each in taken)
        aim = AIMS.get((way.removeprefix("ours, "), size)) if way.startswith("ours") else None
        kept = kept and (aim is None or ratio <= aim)
        wanted = f"(at most {aim})" if aim else ""
        print(f"  {way:12} {ratio:5.2f} of the inference inside it {wanted}")
    whole = {way: statistics.median(e.whole for e in taken) for way, taken in times.items()}
    ratio = whole["ours, jpeg"] / whole["ours, frame"]
    print(f"  an image sent along takes {ratio:.2f} of a call that names the camera")
    print(
        f"  {CALLERS} callers: {throughput:.2f} of the bare engine (at least {LEAST_THROUGHPUT}); "
        f"{faults:.1f} page faults a call",
        flush=True,
    )
    return kept


async def _in_turns(ways: dict[str, Look], rounds: int) -> dict[str, list[Timed]]:
    times: dict[str, list[Timed]] = {way: [] for way in ways}
    for number in range(rounds + 4):
        for way in sorted(ways, reverse=bool(number % 2)):
            timed = await ways[way]()
            if number >= 4:  # the first ones warm up
                times[way].append(timed)
    return times


async def _ours(channel: Any, method: str, image: bytes) -> Timed:
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
    return Timed(whole, reply.result["last_milliseconds"]["infer"] / 1e3)


async def _pipeline(model: str) -> Any:
    """Our own service, called without a server."""
    from cogwork.core.clock import SystemClock
    from cogwork.drivers.mlmodel.attributes import OnnxAttributes
    from cogwork.drivers.mlmodel.loaded import LoadedModels
    from cogwork.drivers.mlmodel.onnx import OnnxModel
    from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
    from cogwork.drivers.vision.mlmodel import MlmodelVision
    from cogwork.graph.name import Api, ResourceName

    name = ResourceName(Api.parse("rdk:service:mlmodel"), "model")
    attributes = OnnxAttributes(model_path=model, num_threads=1)
    loaded = await OnnxModel.new(name, attributes, {}, LoadedModels(SystemClock()))
    settings = MlmodelVisionAttributes(mlmodel_name="model", letterbox=False)
    eyes = ResourceName(Api.parse("rdk:service:vision"), "eyes")
    return await MlmodelVision.new(eyes, settings, {name: loaded})


async def _in_process(pipeline: Any, pixels: Any) -> Timed:
    from cogwork.resource.frame import Frame, Picture

    frame = Frame(Picture(pixels, pipeline.workers), time.time())
    start = time.perf_counter()
    await pipeline.detections_in(frame)
    whole = time.perf_counter() - start
    status = await pipeline.get_status()
    return Timed(whole, status["last_milliseconds"]["infer"] / 1e3)


async def _bare_call(channel: Any, image: bytes) -> Timed:
    call = channel.unary_unary("/bare/Detect")
    start = time.perf_counter()
    reply = await call(image)
    whole = time.perf_counter() - start
    return Timed(whole, float(reply.partition(b" ")[0]))


async def _page_faults(channel: Any, pid: int) -> float:
    """Of the server, for each call in steady state."""
    calls = 50
    before = _faults_of(pid)
    for _ in range(calls):
        await _ours(channel, "GetDetectionsFromCamera", b"")
    return (_faults_of(pid) - before) / calls


def _faults_of(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


async def _throughput(channel: Any, model: str, pixels: Any, seconds: float) -> float:
    session = _session(model)
    size = session.get_inputs()[0].shape[2]
    tensor = np.ascontiguousarray(
        cv2.resize(pixels, (size, size)).transpose(2, 0, 1)[None].astype("f4") / 255
    )
    ratios = []
    for _ in range(3):
        theirs = await asyncio.to_thread(_bare_rate, session, tensor, seconds / 3)
        ratios.append(await _our_rate(channel, seconds / 3) / theirs)
    return statistics.median(ratios)


async def _our_rate(channel: Any, seconds: float) -> float:
    """Each caller with a camera of its own: what all look at is inferred once for all."""
    from viam.gen.service.vision.v1 import vision_pb2 as vision

    call = channel.unary_unary(f"{_VISION}/GetDetectionsFromCamera")
    start, inferred = time.perf_counter(), await _pictures(channel)

    async def ask(camera: str) -> None:
        request = vision.GetDetectionsFromCameraRequest(name="eyes", camera_name=camera)
        data = request.SerializeToString()
        while time.perf_counter() - start < seconds:
            await call(data)

    await asyncio.gather(*(ask(f"frame{number}") for number in range(CALLERS)))
    took = time.perf_counter() - start
    return (await _pictures(channel) - inferred) / took


async def _pictures(channel: Any) -> float:
    from viam.gen.common.v1 import common_pb2 as common

    status = channel.unary_unary(
        f"{_VISION}/GetStatus", response_deserializer=common.GetStatusResponse.FromString
    )
    reply = await status(common.GetStatusRequest(name="eyes").SerializeToString())
    return float(reply.result["pictures"])


def _bare_rate(session: Any, tensor: Any, seconds: float) -> float:
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


def _picture() -> Any:
    from cogwork.drivers.camera.conveyor import Conveyor

    conveyor = Conveyor(seed=3, width=WIDTH, height=HEIGHT)
    return conveyor.render(conveyor.scene(4.0))[0]


def _session(model: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@contextmanager
def _bare(model: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.vision", "--bare", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def _bare_server(model: str) -> int:
    """What somebody would write by hand: decode, resize, normalise, run, in a thread."""
    import grpc
    import grpc.aio

    from cogwork.core.memory import keep_large_blocks

    keep_large_blocks()
    session = _session(model)
    size = session.get_inputs()[0].shape[2]
    frame = _picture()

    def detect(image: bytes) -> bytes:
        pixels: Any = frame
        if image:
            pixels = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR)
        tensor = cv2.dnn.blobFromImage(pixels, 1 / 255, (size, size), swapRB=True)
        start = time.perf_counter()
        [output] = session.run(None, {"images": tensor})
        infer = time.perf_counter() - start
        best = output[0, 4:].max(0)
        return f"{infer} {int((best > 0.25).sum())}".encode()

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

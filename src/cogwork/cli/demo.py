"""`cogwork demo`: a machine with eyes, on any computer, in a minute."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.cli.reach import Unreachable, machine_view
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, orderly_end, write_picture
from cogwork.config.diagnose import printable
from cogwork.core import atomic
from cogwork.core.errors import CogworkError

DEMO_MODEL = Path(__file__).parents[1] / "drivers" / "mlmodel" / "demo"
_PORT = 8080
_STARTING = 60.0
"""Seconds until everything must be ready; the first import of a library takes a while."""
_ENDING = 30.0
"""Seconds that the server gets to end."""
_PERIOD = 1 / 20
_RATED_OVER = 30
"""Pictures, for the rate."""

Server = subprocess.Popen[bytes]


class NoDemo(CogworkError):
    """Something that the demo needs is not there."""


class Engine(NamedTuple):
    library: str
    model: str
    file: str


_ENGINES = (
    Engine("onnxruntime", "onnx_cpu", "conveyor.onnx"),
    Engine("ai_edge_litert", "tflite_cpu", "conveyor.tflite"),
    Engine("openvino", "openvino_cpu", "conveyor.onnx"),
    Engine("torch", "torch_cpu", "conveyor.pt"),
    Engine("tensorflow", "tensorflow_cpu", "conveyor_savedmodel"),
)


def demo(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.directory).absolute()
    try:
        address = f"localhost:{free_port(arguments.port)}"
        config = written(directory, installed_engine(), address)
    except NoDemo as error:
        complain(str(error))
        return USAGE
    try:
        with orderly_end(), running(config, directory) as process:
            _wait(address, process)
            print(f"  http://{address}/ shows it in a browser")
            print(f"  {directory / 'boxes.jpg'} is the newest picture with its boxes")
            print("Ctrl-C ends it.\n", flush=True)
            _show(address, directory, arguments.seconds)
    except CogworkError as error:
        complain(f"{error} ({_shown(directory / 'demo.log')} may tell more)")
        return FAULTS
    except KeyboardInterrupt:
        print()
    print(f"run it again with `cogwork-server -config {_shown(config)}`")
    return FINE


def installed_engine() -> Engine:
    if importlib.util.find_spec("cv2") is not None:
        for engine in _ENGINES:
            if importlib.util.find_spec(engine.library) is not None:
                return engine
    raise NoDemo(
        "the demo needs OpenCV and something that runs models: pip install 'cogwork[onnx]'"
    )


def free_port(wanted: int | None) -> int:
    """The one that is wanted; the usual one, or any, if none is."""
    for port in (_PORT, 0) if wanted is None else (wanted,):
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return int(listener.getsockname()[1])
    raise NoDemo(f"port {wanted} is taken: give another, or none" if wanted else "no port is free")


def written(directory: Path, engine: Engine, address: str) -> Path:
    """The configuration file, with the model beside it."""
    file = directory / "machine.json"
    model = directory / "demo-model"
    if file.exists() and "cogwork demo" not in file.read_text(errors="replace"):
        raise NoDemo(f"{file} is there already, and not of a demo: give another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copytree(DEMO_MODEL, model, dirs_exist_ok=True)
        text = json.dumps(machine(model / engine.file, engine.model, address), indent=2)
        atomic.write(file, f"// Written by `cogwork demo`.\n{text}\n".encode())
    except OSError as error:
        raise NoDemo(f"{directory} cannot be written to: {error.strerror}") from error
    print(f"wrote {_shown(file)}")
    return file


def machine(model_file: Path, model: str, address: str) -> dict[str, Any]:
    return {
        "network": {"bind_address": address},
        "components": [
            {
                "name": "belt",
                "api": "rdk:component:camera",
                "model": "fake",
                "attributes": {"scene": "conveyor", "width": 640, "height": 480},
            },
            {
                "name": "boxes",
                "api": "rdk:component:camera",
                "model": "transform",
                "attributes": {
                    "source": "belt",
                    "pipeline": [
                        {"type": "detections", "attributes": {"detector_name": "inspector"}}
                    ],
                },
            },
        ],
        "services": [
            {
                "name": "parts",
                "api": "rdk:service:mlmodel",
                "model": model,
                "attributes": {
                    "model_path": str(model_file),
                    "label_path": str(model_file.parent / "labels.txt"),
                },
            },
            {
                "name": "inspector",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {
                    "mlmodel_name": "parts",
                    "camera_name": "belt",
                    "default_minimum_confidence": 0.5,
                },
            },
        ],
    }


@contextmanager
def running(config: Path, directory: Path) -> Iterator[Server]:
    """The server, until the end of the block."""
    log = directory / "demo.log"
    command = [sys.executable, "-m", "cogwork.server.main", "-config", str(config)]
    print(f"starting the server; its log is {_shown(log)}", flush=True)
    with (
        log.open("w") as output,
        # Ctrl-C is for this command, which ends the server itself.
        subprocess.Popen(  # noqa: S603 - our own server
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            # After Ctrl-C, leaving the block alone would wait for a quarter of a second.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING)


def _wait(address: str, process: Server) -> None:
    """Until everything is ready, saying what is not."""
    end, told = time.monotonic() + _STARTING, ""
    while True:
        waiting = _waiting(address)
        if not waiting:
            return
        if waiting != told:
            print(f"  {waiting}", flush=True)
            told = waiting
        if process.poll() is not None:
            raise NoDemo(f"the server ended with exit code {process.returncode}")
        if time.monotonic() > end:
            raise NoDemo(f"the machine is not ready after {_STARTING:.0f} s: {waiting}")
        time.sleep(0.1)


def _waiting(address: str) -> str:
    try:
        view = machine_view(address)
    except Unreachable:
        return "waiting for the server"
    resources = view["resources"]
    for each in resources:
        if each["state"] == "unhealthy" and not str(each["reason"]).startswith("depends on"):
            return f"{each['name']}: {printable(str(each['reason']))}"
    left = [each for each in resources if each["state"] != "ready"]
    if left or not resources:
        names = ", ".join(each["name"].rpartition("/")[2] for each in left)
        return f"waiting for {names or 'the machine'}"
    return ""


@dataclass
class Tally:
    """What was seen lately."""

    moments: deque[float] = field(default_factory=lambda: deque(maxlen=_RATED_OVER))
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        if len(self.moments) < 2:
            return 0.0
        return (len(self.moments) - 1) / (self.moments[-1] - self.moments[0])


def _show(address: str, directory: Path, seconds: float | None) -> None:
    # gRPC and the SDK's messages take a moment to import: the server starts meanwhile.
    from cogwork.cli.demo_calls import Calls

    end = time.monotonic() + seconds if seconds is not None else None
    tally, told = Tally(), 0.0
    with Calls(address) as calls:
        while end is None or time.monotonic() < end:
            start = time.monotonic()
            tally.labels = Counter(calls.labels())
            tally.moments.append(start)
            if start - told >= 1 and tally.rate:
                write_picture(directory / "boxes.jpg", calls.picture("boxes"))
                _tell(tally, calls.milliseconds())
                told = start
            time.sleep(max(0.0, _PERIOD - (time.monotonic() - start)))
    if sys.stdout.isatty():
        print()


def _tell(tally: Tally, inference: float) -> None:
    seen = ", ".join(f"{count} {label}" for label, count in sorted(tally.labels.items()))
    line = f"{tally.rate:4.1f} looks/s   inference {inference:4.1f} ms   {seen or 'nothing'}"
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line}", end="", flush=True)
    else:
        print(line, flush=True)


def _shown(path: Path) -> str:
    """As short as it gets from here."""
    with suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)

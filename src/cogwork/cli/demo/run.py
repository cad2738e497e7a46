"""`cogwork demo`: run a machine that detects objects, on any computer, within a minute."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
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

from cogwork.cli.client.http_client import Declined, Unreachable, fetch_status
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    exit_on_signals,
    print_error,
    write_picture,
)
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason

DEMO_MODEL = Path(__file__).parents[2] / "drivers" / "mlmodel" / "demo"
_MODEL_DIRECTORY = "demo-model"
_HEADER = "// Written by `cogwork demo`."
_DEFAULT_PORT = 8080
_START_TIMEOUT = 60.0
"""Timeout in seconds for all resources to become ready. The first import of a library is slow."""
_STOP_TIMEOUT = 30.0
"""Seconds to wait for the server to exit."""
_PERIOD = 1 / 20
_RATE_WINDOW = 30
"""Number of frames over which the rate is computed."""

ServerPopen = subprocess.Popen[bytes]


class DemoUnavailable(CogworkError):
    """The demo cannot run."""


class DemoEngine(NamedTuple):
    library: str
    model: str
    file: str


_ENGINES = (
    DemoEngine("onnxruntime", "onnx_cpu", "conveyor.onnx"),
    DemoEngine("ai_edge_litert", "tflite_cpu", "conveyor.tflite"),
    DemoEngine("openvino", "openvino_cpu", "conveyor.onnx"),
    DemoEngine("torch", "torch_cpu", "conveyor.pt"),
    DemoEngine("tensorflow", "tensorflow_cpu", "conveyor_savedmodel"),
)


def demo(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.directory).absolute()
    try:
        address = f"localhost:{find_free_port(arguments.port)}"
        config = write_config(directory, find_engine(), address)
    except DemoUnavailable as error:
        print_error(str(error))
        return EXIT_USAGE
    code = EXIT_OK
    try:
        with exit_on_signals(), running_server(config, directory) as process:
            _wait_until_ready(address, process)
            print(f"  web page:         http://{address}/")
            print(f"  image:            {directory / 'belt.jpg'}")
            print(f"  annotated image:  {directory / 'boxes.jpg'}")
            print("Press Ctrl-C to stop.\n", flush=True)
            _show_detections(address, directory, arguments.seconds)
    except CogworkError as error:
        print_error(f"{error}; see {_relative_path(directory / 'demo.log')}")
        return EXIT_FAILURE
    except KeyboardInterrupt:
        print()  # end the line on which the terminal shows ^C
        code = EXIT_INTERRUPTED
    print(f"to run it again: cogwork-server -config {_relative_path(config)}")
    return code


def find_engine() -> DemoEngine:
    if importlib.util.find_spec("cv2") is not None:
        for engine in _ENGINES:
            if importlib.util.find_spec(engine.library) is not None:
                return engine
    raise DemoUnavailable(
        "the demo requires OpenCV and an inference engine: pip install 'cogwork[onnx]'"
    )


def find_free_port(wanted: int | None) -> int:
    """Return the wanted port. If none is wanted, return 8080, or any free port if 8080 is in
    use."""
    for port in (_DEFAULT_PORT, 0) if wanted is None else (wanted,):
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return int(listener.getsockname()[1])
    raise DemoUnavailable(
        f"port {wanted} is in use; choose another or omit --port" if wanted else "no free port"
    )


def write_config(directory: Path, engine: DemoEngine, address: str) -> Path:
    """Write the configuration file, with the model next to it. Keep a file that someone else has
    written or changed."""
    file = directory / "machine.json"
    try:
        _check_own(file)
        atomic.make_directory(directory, 0o755)
        shutil.copytree(DEMO_MODEL, directory / _MODEL_DIRECTORY, dirs_exist_ok=True)
        atomic.write(file, _format_config(directory, engine, address).encode())
    except OSError as error:
        raise DemoUnavailable(f"cannot write to {directory}: {write_reason(error)}") from error
    print(f"wrote {_relative_path(file)}")
    return file


def _check_own(file: Path) -> None:
    """Raise DemoUnavailable if the file is not exactly as a demo wrote it, and OSError."""
    if not file.exists():
        return
    text = file.read_text(errors="replace")
    if _HEADER not in text:
        raise DemoUnavailable(f"{file} exists and is not from a demo; choose another directory")
    address = _find_address(text)
    if text not in (_format_config(file.parent, engine, address) for engine in _ENGINES):
        raise DemoUnavailable(
            f"{file} was changed after the demo wrote it, so it is kept; run it with: "
            f"cogwork-server -config {shlex.quote(_relative_path(file))}, or choose another "
            "directory for the demo"
        )


def _find_address(text: str) -> str:
    try:
        value: Any = read_json(text).value
        return str(value["network"]["bind_address"])
    except (JsonSyntaxError, KeyError, TypeError):
        return ""


def _format_config(directory: Path, engine: DemoEngine, address: str) -> str:
    model_file = directory / _MODEL_DIRECTORY / engine.file
    text = json.dumps(build_config(model_file, engine.model, address), indent=2)
    return f"{_HEADER}\n{text}\n"


def build_config(model_file: Path, model: str, address: str) -> dict[str, Any]:
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
def running_server(config: Path, directory: Path) -> Iterator[ServerPopen]:
    """Run the server until the end of the block."""
    log = directory / "demo.log"
    command = [sys.executable, "-m", "cogwork.server.main", "-config", str(config)]
    print(f"starting the server (log: {_relative_path(log)})", flush=True)
    with (
        log.open("w") as output,
        # In its own session, so that Ctrl-C reaches only this command, which stops the server.
        subprocess.Popen(  # noqa: S603 - our own server
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            # After Ctrl-C, Popen.__exit__ waits only a quarter of a second, so wait here.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT)


def _wait_until_ready(address: str, process: ServerPopen) -> None:
    """Wait until every resource is ready, and print which ones are pending."""
    end, printed = time.monotonic() + _START_TIMEOUT, ""
    while True:
        waiting = _describe_pending(address)
        if not waiting:
            return
        if waiting != printed:
            print(f"  {waiting}", flush=True)
            printed = waiting
        if process.poll() is not None:
            raise DemoUnavailable(f"the server exited with code {process.returncode}")
        if time.monotonic() > end:
            raise DemoUnavailable(
                f"the machine is not ready after {_START_TIMEOUT:.0f}s: {waiting}"
            )
        time.sleep(0.1)


def _describe_pending(address: str) -> str:
    try:
        view = fetch_status(address)
    except (Declined, Unreachable):
        return "waiting for the server"
    resources = view["resources"]
    for each in resources:
        if each["state"] == "unhealthy" and not str(each["reason"]).startswith("depends on"):
            return f"{each['name']}: {replace_unprintable(str(each['reason']))}"
    pending = [each for each in resources if each["state"] != "ready"]
    if pending or not resources:
        names = ", ".join(each["name"].rpartition("/")[2] for each in pending)
        return f"waiting for {names or 'the machine'}"
    return ""


@dataclass
class DetectionStats:
    """The latest detections and the times of recent frames."""

    timestamps: deque[float] = field(default_factory=lambda: deque(maxlen=_RATE_WINDOW))
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        if len(self.timestamps) < 2:
            return 0.0
        return (len(self.timestamps) - 1) / (self.timestamps[-1] - self.timestamps[0])


def _show_detections(address: str, directory: Path, seconds: float | None) -> None:
    # gRPC and the SDK's messages import slowly, so import them while the server starts.
    from cogwork.cli.demo.client import DemoClient

    end = time.monotonic() + seconds if seconds is not None else None
    stats, printed_at = DetectionStats(), 0.0
    with DemoClient(address) as client:
        while end is None or time.monotonic() < end:
            start = time.monotonic()
            stats.labels = Counter(client.fetch_labels())
            stats.timestamps.append(start)
            if start - printed_at >= 1 and stats.rate:
                write_picture(directory / "belt.jpg", client.fetch_image("belt"))
                write_picture(directory / "boxes.jpg", client.fetch_image("boxes"))
                _print_stats(stats, client.fetch_inference_ms())
                printed_at = start
            time.sleep(max(0.0, _PERIOD - (time.monotonic() - start)))
    if sys.stdout.isatty():
        print()


def _print_stats(stats: DetectionStats, inference_ms: float) -> None:
    seen = ", ".join(f"{count} {label}" for label, count in sorted(stats.labels.items()))
    line = f"{stats.rate:4.1f} frames/s   inference {inference_ms:4.1f} ms   {seen or 'nothing'}"
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line}", end="", flush=True)
    else:
        print(line, flush=True)


def _relative_path(path: Path) -> str:
    """Return the path relative to the current directory if it is inside it."""
    with suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)

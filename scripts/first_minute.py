"""Time the first minute of a new user: a clean environment, the built wheel, `cogwork demo`.

python scripts/first_minute.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_SECONDS = 60.0
"""Maximum seconds from the end of the installation to the first detections."""


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        wheel = build_wheel(directory)
        python = directory / "venv" / "bin" / "python"
        run(sys.executable, "-m", "venv", str(directory / "venv"))
        start = time.monotonic()
        run(str(python), "-m", "pip", "install", "--quiet", f"{wheel}[onnx]")
        print(f"installed in {time.monotonic() - start:.0f} s")
        seconds = time_first_boxes(directory)
    print(f"first detections {seconds:.1f}s later (at most {MAX_SECONDS:.0f}s)")
    return 0 if seconds <= MAX_SECONDS else 1


def build_wheel(directory: Path) -> Path:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(directory), str(ROOT))
    return next(directory.glob("*.whl"))


def time_first_boxes(directory: Path) -> float:
    """Return the seconds until the demo prints the first labels."""
    command = [str(directory / "venv" / "bin" / "cogwork"), "demo", str(directory / "demo")]
    start = time.monotonic()
    with subprocess.Popen(
        [*command, "--seconds", "5", "--port", "8098"], stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            print(f"  {line}", end="")
            if "frames/s" in line and "nothing" not in line:
                taken = time.monotonic() - start
                demo.terminate()
                return taken
    raise SystemExit("the demo exited without detections")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())

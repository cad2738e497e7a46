"""`python -m tests.fuzz [TARGET …] [--seconds N | --runs N] [--keep DIR]`: fuzz the parsers.

Uses atheris, which follows coverage, where it is installed, else random mutations of the seeds.
Prints one table, and exits with 1 if a parser broke its contract.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.table import GROUPS, NAMES
from tests.support.paths import REPOSITORY

_ROOT = REPOSITORY
_GRACE = 180.0
"""Seconds that a worker gets in addition, to import the parsers and to end."""
_RUNS_DEADLINE = 7200.0
"""Seconds for a number of runs."""
_HEADER = (
    "| target | engine | executions | per second | edges/features | lines | corpus | slowest "
    "| failures |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Result:
    target: str
    engine: str
    executions: int
    per_second: float
    edges: str
    lines: str
    corpus: int
    slowest: float
    failures: int

    def __str__(self) -> str:
        return (
            f"| {self.target} | {self.engine} | {self.executions} | {self.per_second:.0f} "
            f"| {self.edges} | {self.lines} | {self.corpus} | {1000 * self.slowest:.0f} ms "
            f"| {self.failures} |"
        )


def main() -> int:
    arguments = _parse_arguments()
    engine = "atheris" if importlib.util.find_spec("atheris") else "random"
    selected = [
        name
        for name in NAMES
        if not arguments.targets or name in arguments.targets or _group(name) in arguments.targets
    ]
    print(*_HEADER, sep="\n", flush=True)
    failures = 0
    for name in selected:
        directory = arguments.keep / name
        _remove_failures(directory)
        result = _fuzz(name, engine, directory, arguments.seconds, arguments.runs)
        print(result, flush=True)
        failures += result.failures
        _print_failures(directory)
    return 1 if failures else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", help="targets or groups; all by default")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--seconds", type=float, default=60.0, help="for each target")
    budget.add_argument("--runs", type=int, default=0, help="for each target, instead of seconds")
    parser.add_argument(
        "--keep",
        type=Path,
        default=_ROOT / "build" / "fuzz",
        help="directory for failing inputs, and for corpora that the next run starts from",
    )
    arguments = parser.parse_args()
    for name in arguments.targets:
        if name not in (*NAMES, *GROUPS):
            parser.error(f"there is no target {name}; there are {', '.join(NAMES)}")
    return arguments


def _remove_failures(directory: Path) -> None:
    """Remove the failures of an earlier run."""
    for file in (*(directory / "crashes").glob("*"), *directory.glob("abort-*")):
        file.unlink()


def _group(name: str) -> str:
    return name.partition(".")[0]


def _fuzz(name: str, engine: str, directory: Path, seconds: float, runs: int) -> Result:
    fuzzing = _worker_command("fuzz", name, directory, engine, str(seconds), str(runs))
    deadline = _RUNS_DEADLINE if runs else seconds + _GRACE
    output = _run(fuzzing, directory / "fuzz.log", deadline)
    measurement = _parse_last_json(
        _run(_worker_command("measure", name, directory), directory / "measure.log", 300)
    )
    if engine == "atheris":
        executions = _find_number(r"number_of_executed_units: (\d+)", output)
        per_second = _find_number(r"average_exec_per_sec:\s+(\d+)", output)
        found = re.findall(r"cov: (\d+) ft: (\d+)", output)
        edges = "/".join(found[-1]) if found else "-"
    else:
        figures = _parse_last_json(output)
        executions = int(figures.get("executions", 0))
        per_second, edges = executions / max(1e-9, figures.get("seconds", 0.0)), "-"
    failures = len([*(directory / "crashes").glob("*.bin"), *directory.glob("abort-*")])
    # A process that ended before it printed its figures has crashed, too.
    failures += not executions or not measurement
    return Result(
        name,
        engine,
        executions,
        per_second,
        edges,
        str(measurement.get("lines", "-")),
        int(measurement.get("inputs", 0)),
        float(measurement.get("slowest", 0.0)),
        failures,
    )


def _worker_command(step: str, name: str, directory: Path, *options: str) -> list[str]:
    module = "tests.fuzz.worker"
    return [sys.executable, "-W", "ignore", "-m", module, step, name, str(directory), *options]


def _run(command: list[str], log: Path, deadline: float) -> str:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        try:
            subprocess.run(
                command,
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=deadline,
                check=False,
            )
        except subprocess.TimeoutExpired:
            file.write(b"\nended: it took too long\n")
    return log.read_text(errors="replace")


def _parse_last_json(output: str) -> dict[str, Any]:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            figures: dict[str, Any] = json.loads(line)
            return figures
    return {}


def _find_number(pattern: str, output: str) -> int:
    found = re.search(pattern, output)
    return int(found[1]) if found else 0


def _print_failures(directory: Path) -> None:
    for report in sorted((directory / "crashes").glob("*.txt")):
        print(f"\n{report.with_suffix('.bin')}: {report.read_text()}", file=sys.stderr, flush=True)
    for abort in sorted(directory.glob("abort-*")):
        end = (directory / "fuzz.log").read_text(errors="replace")[-3000:]
        print(f"\n{abort}: {abort.read_bytes()[:500]!r}\n{end}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""One target in one process: `python -m tests.fuzz.worker fuzz|measure TARGET DIRECTORY …`.

`fuzz` writes inputs to DIRECTORY/corpus and failures to DIRECTORY/crashes. `measure` runs these
inputs again without instrumentation, for the coverage in lines and the time they take.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.crashes import MAX_CRASHES, Crashes
from tests.fuzz.mutation import generate_mutations, stretch
from tests.fuzz.target import Target, run_within_budget

_INSTRUMENTED_SLOWDOWN = 20.0
"""Slowdown of code with the counters of atheris."""
_MAX_SAVED = 300
"""Inputs of a run without atheris that are saved for `measure`."""
_MAX_MEASURED = 1000
_MEASURED_SECONDS = 10.0
_TRACED_SECONDS = 60.0
"""Additional seconds in which only the coverage is measured."""
_STRETCHES = 3


def main() -> None:
    step, name, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if step == "measure":
        _measure(_load(name), directory)
        return
    engine, seconds, runs = sys.argv[4], float(sys.argv[5]), int(sys.argv[6])
    (directory / "corpus").mkdir(parents=True, exist_ok=True)
    if engine == "atheris":
        _fuzz_with_atheris(name, directory, seconds, runs)
    else:
        _fuzz_at_random(_load(name), directory, seconds, runs)


def _load(name: str) -> Target:
    from tests.fuzz.table import load_target

    return load_target(name)


def _fuzz_with_atheris(name: str, directory: Path, seconds: float, runs: int) -> None:
    """Fuzz and end the process, because libFuzzer does not return."""
    import atheris

    with atheris.instrument_imports(include=["cogwork", "cronsim"]):
        target = _load(name)
    corpus, dictionary = directory / "corpus", directory / "tokens.dict"
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed[: target.largest])
    dictionary.write_text("".join(f'"{_escape(token)}"\n' for token in target.tokens))
    crashes = Crashes(directory / "crashes")

    def run(data: bytes) -> None:
        with _record_crashes(crashes, data):
            run_within_budget(target, data, _INSTRUMENTED_SLOWDOWN)
        if len(crashes) >= MAX_CRASHES:
            raise RuntimeError(f"{MAX_CRASHES} distinct failures: fix these first")

    flags = [
        f"-max_len={target.largest}",
        *([f"-dict={dictionary}"] if target.tokens else []),
        f"-artifact_prefix={directory}/abort-",
        "-print_final_stats=1",
        "-rss_limit_mb=3000",
        "-timeout=120",
        f"-runs={runs}" if runs else f"-max_total_time={seconds:.0f}",
    ]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], run)
    atheris.Fuzz()


def _fuzz_at_random(target: Target, directory: Path, seconds: float, runs: int) -> None:
    crashes = Crashes(directory / "crashes")
    started, count = time.monotonic(), 0
    inputs = generate_mutations(target, random.Random(1))
    for data in itertools.chain(target.seeds(), _limit_inputs(inputs, started + seconds, runs)):
        with _record_crashes(crashes, data):
            run_within_budget(target, data)
        if count < _MAX_SAVED:
            (directory / "corpus" / f"{count:06}").write_bytes(data)
        count += 1
        if len(crashes) >= MAX_CRASHES:
            break
    with _record_crashes(crashes, b""):
        target.close()
    print(json.dumps({"executions": count, "seconds": time.monotonic() - started}))


def _limit_inputs(inputs: Iterator[bytes], deadline: float, runs: int) -> Iterator[bytes]:
    count = 0
    while count < runs if runs else time.monotonic() < deadline:
        count += 1
        yield next(inputs)


def _measure(target: Target, directory: Path) -> None:
    from tests.fuzz.coverage import LineCoverage

    coverage, crashes = LineCoverage(target.parsers), Crashes(directory / "crashes")
    generator, slowest = random.Random(2), 0.0
    inputs = [file.read_bytes() for file in sorted((directory / "corpus").iterdir())]
    generator.shuffle(inputs)
    deadline = time.monotonic() + _MEASURED_SECONDS
    for data in inputs[:_MAX_MEASURED]:
        with _record_crashes(crashes, data):
            coverage.trace(
                functools.partial(run_within_budget, target, data, _INSTRUMENTED_SLOWDOWN)
            )
        if time.monotonic() > deadline + _TRACED_SECONDS:
            break
        if time.monotonic() > deadline:
            continue
        larger = (stretch(data, target.stretched, generator) for _ in range(_STRETCHES))
        for each in (data, *larger):
            started = time.process_time()
            with _record_crashes(crashes, each):
                run_within_budget(target, each)
            slowest = max(slowest, time.process_time() - started)
    with _record_crashes(crashes, b""):
        target.close()
    print(json.dumps({"lines": str(coverage), "inputs": len(inputs), "slowest": slowest}))


@contextlib.contextmanager
def _record_crashes(crashes: Crashes, data: bytes) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        crashes.add(error, data)


def _escape(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


if __name__ == "__main__":
    # Warnings of NumPy and OpenCV about strange values do not matter here.
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()

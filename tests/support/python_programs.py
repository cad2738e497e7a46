"""Runs programs, one after the other, and prints what each of them wrote, or how it failed, as
JSON.

Run as `python -m tests.support.python_programs FILE...`, because importing the SDK takes a second.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
import traceback
from pathlib import Path

_DEADLINE = 20
"""Seconds."""


def run(file: str) -> dict[str, str]:
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        signal.alarm(_DEADLINE)
        try:
            exec(compile(Path(file).read_text(), file, "exec"), {"__name__": "__main__"})
        except Exception:
            error = traceback.format_exc()
        finally:
            signal.alarm(0)
    return {"printed": printed.getvalue(), "error": error}


def expire(*_: object) -> None:
    raise TimeoutError("it did not end")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, expire)
    outcomes = {file: run(file) for file in sys.argv[1:]}
    print(json.dumps(outcomes))

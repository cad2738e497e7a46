"""The line of a program's output that explains why it ended."""

from __future__ import annotations

import pytest

from cogwork.subprocesses.error_line import find_error_line

TRACEBACK = """\
Traceback (most recent call last):
  File "main.py", line 3, in <module>
    import numpy
ModuleNotFoundError: No module named 'numpy'
"""
OUTPUTS = {
    "python": (
        f"starting\n{TRACEBACK}sys:1: RuntimeWarning: coroutine 'serve' was never awaited\n",
        "ModuleNotFoundError: No module named 'numpy'",
    ),
    "python, class without the usual ending": (
        'Traceback (most recent call last):\n  File "a.py", line 1\nacme.Unplugged: port 3\nbye\n',
        "acme.Unplugged: port 3",
    ),
    "python, chained": (
        f"{TRACEBACK}\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n",
        "KeyError: 'x'",
    ),
    "python, destructor at the end": (
        f"{TRACEBACK}Exception ignored in: <function Pin.__del__ at 0x7f>\n"
        'Traceback (most recent call last):\n  File "b.py", line 9\nAttributeError: closed\n',
        "ModuleNotFoundError: No module named 'numpy'",
    ),
    "python, start of the traceback lost": (
        "    import numpy\nModuleNotFoundError: No module named 'numpy'\nclosing\n",
        "ModuleNotFoundError: No module named 'numpy'",
    ),
    "go": (
        "panic: runtime error: index out of range [3]\n\ngoroutine 1 [running]:\nmain.main()\n"
        "\t/tmp/main.go:5 +0x1d\nexit status 2\n",
        "panic: runtime error: index out of range [3]",
    ),
    "rust": (
        "thread 'main' panicked at src/main.rs:2:5:\nno such device\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "thread 'main' panicked at src/main.rs:2:5: no such device",
    ),
    "c++": (
        "terminate called after throwing an instance of 'std::runtime_error'\n"
        "  what():  no such device\n",
        "what():  no such device",
    ),
    "javascript": (
        "node:internal/modules/cjs/loader:1080\n  throw err;\n\n"
        "Error: Cannot find module 'express'\n    at Module._load (node:internal)\n\n"
        "Node.js v18.19.0\n",
        "Error: Cannot find module 'express'",
    ),
    "loader": (
        "./run: error while loading shared libraries: libcamera.so.0: cannot open\ndone\n",
        "./run: error while loading shared libraries: libcamera.so.0: cannot open",
    ),
    "shell": (
        "run.sh: line 3: python4: not found\nrun.sh is done\n",
        "run.sh: line 3: python4: not found",
    ),
    "complaint": ("opening\nfatal: port 3 is in use\nclosing\nclosed\n", "fatal: port 3 is in use"),
    "harmless": ("INFO the last error was fixed\nWARNING: no such option\nclosed\n", ""),
    "old complaint": ("cannot find a\n" + "working\n" * 5, ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("output", "line"), OUTPUTS.values(), ids=list(OUTPUTS))
def test_line_that_explains_the_end_is_found(output: str, line: str) -> None:
    assert find_error_line(output.split("\n")) == line

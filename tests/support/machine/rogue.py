r"""A module that misbehaves as configured, and starts in a few milliseconds.

`ROGUE` contains words; in brackets is a method of ModuleService, `DoCommand`, or `start`:

- `exit(AddResource)`: exits with code 5, after two lines on stderr; `crash(…)`: by SIGSEGV
- `hang(…)`: never answers that call; `block(…)`: nor any later call
- `stall(…)`: does not answer it the first time; `slow(…)`: blocks for one second, and prints to
  stdout when it is done; `garble(…)`: answers with nonsense
- `unready(3)`: reports three times that it is not ready
- `deaf`: ignores SIGTERM
- `daemon`: leaves a process in its own session; `bomb`: a child that forks until there are 32, all
  of which ignore SIGTERM
- `flood(1000)`: writes so many bytes of lines to stderr, from Ready on

`ONCE` is a file: it misbehaves only while that file is missing, and creates it.
`MODEL` is the model that it offers. `NOTES` is a file to which it adds a line for each call.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "modules" / "stub"))

import stub  # type: ignore[import-not-found]

READY = stub.MODULE + b"Ready"
CODE = 5


def main() -> None:
    model = os.environ.get("MODEL", "acme:rogue:thing").encode()
    stub.METHODS[READY] = _ready(model)
    once = os.environ.get("ONCE")
    if not once or not Path(once).exists():
        if once:
            Path(once).touch()
        _turn_rogue(os.environ.get("ROGUE", "").split())
    if notes := os.environ.get("NOTES"):
        _record_calls(Path(notes))
    stub.main()


def _ready(model: bytes) -> bytes:
    inner: bytes = stub.field(1, stub.field(1, stub.SERVED) + stub.field(2, model))
    return b"\x08\x01" + bytes(stub.field(2, inner))


def _turn_rogue(words: list[str]) -> None:
    at: dict[str, str] = {}
    for word in words:
        verb, _, place = word.rstrip(")").partition("(")
        if place == "start":
            _misbehave("block" if verb == "hang" else verb)
        elif verb in ("exit", "crash", "hang", "block", "stall", "slow"):
            at[place] = verb
        elif verb == "garble":
            stub.METHODS[stub.MODULE + place.encode()] = b"\xff\xff\xff"
        elif verb == "unready":
            _be_unready(int(place))
        elif verb == "flood":
            _at_ready(_flood, int(place))
        else:
            {"deaf": _ignore_sigterm, "daemon": _leave_daemon, "bomb": _fork}[verb]()
    answer = stub.reply

    def reply(stream: int, path: bytes, body: bytes) -> bytes:
        place = path.rpartition(b"/")[2].decode()
        verb = at.get(place)
        if verb == "stall":
            del at[place]
        elif verb == "slow":
            time.sleep(1)
            os.write(1, f"done with {place}\n".encode())
        elif verb is not None:
            _misbehave(verb)
        return b"" if verb not in (None, "slow") else bytes(answer(stream, path, body))

    stub.reply = reply


def _misbehave(verb: str) -> None:
    """Misbehave, and return only if just this one call hangs."""
    if verb == "exit":
        os.write(2, b"Traceback of the rogue\nRuntimeError: the device is not there\n")
        os._exit(CODE)
    if verb == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if verb == "block":
        time.sleep(3600)


def _be_unready(times: int) -> None:
    left = [times]
    answer = stub.reply

    def reply(stream: int, path: bytes, body: bytes) -> bytes:
        if path != READY or not left[0]:
            return bytes(answer(stream, path, body))
        left[0] -= 1
        message, stub.METHODS[READY] = stub.METHODS[READY], b""
        try:
            return bytes(answer(stream, path, body))
        finally:
            stub.METHODS[READY] = message

    stub.reply = reply


def _ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(3600)
        os._exit(0)
    os.wait()


def _fork() -> None:
    if os.fork() == 0:
        _ignore_sigterm()
        for _ in range(5):
            os.fork()
        time.sleep(3600)
        os._exit(0)


def _at_ready(do: object, size: int) -> None:
    answer = stub.reply

    def reply(stream: int, path: bytes, body: bytes) -> bytes:
        if path == READY:
            threading.Thread(target=do, args=(size,), daemon=True).start()  # type: ignore[arg-type]
        return bytes(answer(stream, path, body))

    stub.reply = reply


def _flood(size: int) -> None:
    lines = (b"all work and no play makes a dull log " * 3 + b"\n") * 512
    while size > 0:
        size -= os.write(2, lines[:size])


def _record_calls(file: Path) -> None:
    answer = stub.reply

    def reply(stream: int, path: bytes, body: bytes) -> bytes:
        method = path.rpartition(b"/")[2].decode()
        said = body[5:].decode(errors="replace")
        with file.open("a") as notes:
            notes.write(f"{time.monotonic()} {method} {said!r}\n")
        return bytes(answer(stream, path, body))

    stub.reply = reply


if __name__ == "__main__":
    main()

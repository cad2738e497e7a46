"""`cogwork status` and `cogwork graph`: how a running machine does, and how it hangs together."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from cogwork.cli.drawing import Drawn, as_dot, as_text
from cogwork.cli.picture import as_svg
from cogwork.cli.reach import Unreachable, history, machine_view
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, paint, print_json
from cogwork.config.diagnose import printable
from cogwork.core import duration

_STYLES = {"ready": "dim", "unhealthy": "red"}


def status(arguments: argparse.Namespace) -> int:
    if arguments.history is not None:
        return _history(arguments)
    try:
        view = machine_view(arguments.address)
    except Unreachable as error:
        complain(str(error))
        return USAGE
    if arguments.json:
        print_json(view)
    else:
        print(_summary(view))
        for line in _table(view["resources"]):
            print(line)
        for line in _modules(view.get("modules", [])):
            print(line)
        for job in view.get("jobs", ()):
            if job["configured"]:
                print(_line_of_job(job))
    ready = all(resource["state"] == "ready" for resource in view["resources"])
    return FINE if ready and view["state"] == "running" else FAULTS


def _history(arguments: argparse.Namespace) -> int:
    try:
        told = history(arguments.address, arguments.history or None)
    except Unreachable as error:
        complain(str(error))
        return USAGE
    if arguments.json:
        print_json(told)
    elif told:
        print("\n".join(map(_line_of_history, told)))
    else:
        print(f"nothing is known of {arguments.history or 'this machine'} yet")
    return FINE


def _line_of_history(line: dict[str, Any]) -> str:
    rest = {key: value for key, value in line.items() if key not in ("time", "event")}
    what = line.get("event", "")
    if what == "resource":
        reason = f": {rest['reason']}" if rest.get("reason") else ""
        what = f"{rest.get('resource')} is {rest.get('state')}{reason}"
    else:
        what += " " + ", ".join(f"{key} {value}" for key, value in rest.items())
    style = _STYLES.get(str(line.get("state")), "")
    text = f"{line.get('time')}  {printable(what)}"
    return paint(text, style) if style == "red" else text


def graph(arguments: argparse.Namespace) -> int:
    try:
        view = machine_view(arguments.address)
    except Unreachable as error:
        complain(str(error))
        return USAGE
    picture = _drawn(view["resources"], _format(arguments))
    if arguments.output is None:
        print(picture)
        return FINE
    try:
        Path(arguments.output).write_text(f"{picture}\n", encoding="utf-8")
    except OSError as error:
        complain(f"cannot write {arguments.output}: {error.strerror}")
        return USAGE
    return FINE


def _summary(view: dict[str, Any]) -> str:
    resources = view["resources"]
    ready = sum(resource["state"] == "ready" for resource in resources)
    words = [paint(view["state"], "bold"), f"{ready} of {len(resources)} resources ready"]
    if view["applied_at"] is not None:
        words.append(f"configuration {view['revision']}, applied {_ago(view['applied_at'])} ago")
    return ", ".join(words)


def _table(resources: list[dict[str, Any]]) -> list[str]:
    # Those that need somebody come last, next to where people look.
    ordered = sorted(resources, key=lambda resource: resource["state"] != "ready")
    rows = [
        (r["state"], r["name"], r["model"], _ago(r["since"]), printable(r["reason"] or ""))
        for r in ordered
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    return [_line(row, widths) for row in rows]


def _modules(modules: list[dict[str, Any]]) -> list[str]:
    rows = [
        (
            each["state"],
            f"module {each['name']}",
            f"process {each['pid']}" if each["pid"] else "",
            _ago(each["since"]),
            printable(each["reason"] or ""),
        )
        for each in modules
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    return [_line(row, widths) for row in rows]


def _line_of_job(job: dict[str, Any]) -> str:
    done = max(job["successes"], default=None)
    failed = max(job["failures"], key=lambda each: each["time"], default=None)
    if failed is not None and (done is None or failed["time"] > done):
        words, style = f"failed {_ago(failed['time'])} ago: {failed['reason']}", "red"
    else:
        words, style = f"done {_ago(done)} ago" if done is not None else "not run yet", "dim"
    return f"{paint('job', style)}  {job['name']}  {printable(words)}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    style = _STYLES.get(row[0], "yellow")
    return "  ".join([paint(cells[0], style), *cells[1:], row[-1]]).rstrip()


def _ago(moment: float) -> str:
    return duration.render(max(0, round(time.time() - moment)))


def _format(arguments: argparse.Namespace) -> str:
    """As asked, else as the file is called."""
    if arguments.format is not None:
        return str(arguments.format)
    suffix = Path(arguments.output or "").suffix.removeprefix(".")
    return suffix if suffix in ("dot", "svg") else "text"


def _drawn(resources: list[dict[str, Any]], form: str) -> str:
    nodes = [
        Drawn(r["name"], r["model"], r["state"], r["reason"], tuple(r["depends_on"]))
        for r in resources
    ]
    match form:
        case "dot":
            return as_dot(nodes)
        case "svg":
            return as_svg(nodes)
        case _:
            return as_text(nodes, paint)

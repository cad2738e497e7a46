"""`cogwork status` and `cogwork graph`: the state of a machine and its resource graph."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cogwork.cli.client.another_make import (
    UNKNOWN,
    fetch_view,
    format_version,
    report_missing,
    report_no_history,
)
from cogwork.cli.client.http_client import (
    Declined,
    NotCogwork,
    Unreachable,
    fetch_history,
    fetch_status,
)
from cogwork.cli.machine.graph_text import DiagramNode, as_dot, as_text
from cogwork.cli.machine.graphviz import IMAGE_FORMATS, CannotDraw, draw
from cogwork.cli.machine.history import format_event
from cogwork.cli.machine.unhealthy import has_failed_last, is_healthy, keep_unhealthy
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    format_json,
    paint,
    print_error,
    print_json,
)
from cogwork.config.check.diagnostics import (
    did_you_mean,
    replace_unprintable,
    replace_unprintable_lines,
)
from cogwork.config.source.config_report import ConfigState, describe_report, format_reported
from cogwork.core import duration
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import write_reason


class NoResource(CogworkError):
    """The machine has no resource with this name, and no events of one."""


_STYLES = {**dict.fromkeys(("ready", "running", "finished"), "dim"), "unhealthy": "red"}


def status(arguments: argparse.Namespace) -> int:
    if arguments.history is not None:
        return _print_history(arguments)
    try:
        view = fetch_view(arguments.address)
    except (Declined, Unreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    shown = keep_unhealthy(view) if arguments.unhealthy else view
    if arguments.json:
        print_json(shown)
    else:
        print(_format_summary(view))
        for line in _format_details(shown):
            print(line)
    report_missing(
        view,
        "models, dependencies, ignored settings, processes, certificate, updates and faults of "
        "the configuration",
    )
    return EXIT_OK if is_healthy(view) else EXIT_FAILURE


def _format_details(view: dict[str, Any]) -> Iterable[str]:
    if version := format_version(view):
        yield version
    if denial := view.get("maintenance_denied"):
        yield _format_maintenance(denial)
    yield from map(_format_update, view.get("updates", ()))
    yield from _format_tls(view.get("tls"))
    for notice in view.get("cloud_notices", ()):
        yield paint(replace_unprintable(notice), "yellow")
    yield from _format_resources(view["resources"])
    yield from _format_modules(view.get("modules", []))
    yield from _format_processes(view.get("processes", []))
    yield from _format_packages(view.get("packages", []))
    for job in view.get("jobs", ()):
        if job["configured"]:
            yield _format_job(job)
    yield from _format_config(view.get("configuration"))


def _format_tls(report: dict[str, Any] | None) -> Iterable[str]:
    """Yield the expiry of the certificate, and its faults."""
    if report is None:
        return
    if report["expires_at"] is not None:
        day = time.strftime("%Y-%m-%d", time.gmtime(report["expires_at"]))
        names = ", ".join(report["names"]) or "no name"
        yield f"TLS certificate for {names}, valid until {day}"
    for problem in (report["warning"], report["fault"]):
        if problem is not None:
            yield paint(replace_unprintable(problem), "red")


def _print_history(arguments: argparse.Namespace) -> int:
    try:
        events = fetch_history(arguments.address, arguments.history or None)
        if not events and arguments.history:
            _require_resource(arguments.address, arguments.history)
    except NoResource as error:
        print_error(str(error))
        return EXIT_USAGE
    except NotCogwork as error:
        return report_no_history(arguments.address, error)
    except (Declined, Unreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    if arguments.json:
        print_json(events)
    elif events:
        print("\n".join(map(format_event, events)))
    else:
        print(f"no history of {arguments.history or 'this machine'} yet")
    return EXIT_OK


def _require_resource(address: str, wanted: str) -> None:
    """Raise NoResource if the machine has no resource with this full or short name."""
    names = [str(each["name"]) for each in fetch_status(address)["resources"]]
    known = [*(name.partition("/")[2] for name in names), *names]
    if wanted not in known:
        hint = did_you_mean(wanted, known) or "`cogwork status` lists the resources"
        raise NoResource(f'the machine has no resource "{wanted}"; {hint}')


def graph(arguments: argparse.Namespace) -> int:
    try:
        view = fetch_view(arguments.address)
    except (Declined, Unreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    report_missing(view, "models and dependencies")
    try:
        form = "json" if arguments.json else _choose_format(arguments)
        diagram = _render_graph(view["resources"], form)
    except CannotDraw as error:
        print_error(str(error))
        return EXIT_USAGE
    if arguments.output is None:
        print(diagram.decode(), end="")
        return EXIT_OK
    try:
        Path(arguments.output).write_bytes(diagram)
    except OSError as error:
        print_error(f"cannot write {arguments.output}: {write_reason(error)}")
        return EXIT_USAGE
    return EXIT_OK


def _format_summary(view: dict[str, Any]) -> str:
    resources = view["resources"]
    if view["state"] == UNKNOWN:
        count = "1 resource" if len(resources) == 1 else f"{len(resources)} resources"
        return f"{paint('state unknown', 'bold')}, {count}"
    ready = sum(resource["state"] == "ready" for resource in resources)
    state, revision = replace_unprintable(view["state"]), replace_unprintable(view["revision"])
    words = [paint(state, "bold"), f"{ready} of {len(resources)} resources ready"]
    if view["applied_at"] is not None:
        words.append(f"configuration {revision}, applied {_format_age(view['applied_at'])} ago")
    return ", ".join(words)


def _format_maintenance(denial: dict[str, Any]) -> str:
    text = f"maintenance not allowed for {_format_age(denial['since'])}: {denial['reason']}"
    return paint(replace_unprintable(text), "yellow")


def _format_update(update: dict[str, Any]) -> str:
    age, is_failed = _format_age(update["since"]), update["phase"] == "failed"
    when = f"failed {age} ago" if is_failed else f"is {update['phase']} for {age}"
    detail = f": {update['detail']}" if update["detail"] else ""
    text = f"{update['product']} {update['version']} {when}{detail}"
    return paint(replace_unprintable(text), "red" if is_failed else "yellow")


def _format_resources(resources: list[dict[str, Any]]) -> list[str]:
    # Put resources that need attention at the end of the list, closer to the prompt.
    ordered = sorted(resources, key=lambda resource: resource["state"] != "ready")
    rows = [
        (r["state"], r["name"], r.get("model", ""), _format_since(r), _format_reason(r))
        for r in ordered
    ]
    return _align_rows(rows)


def _format_reason(resource: dict[str, Any]) -> str:
    reasons = [resource["reason"]] if resource["reason"] else []
    reasons += [f"ignored: {each}" for each in resource.get("ignored_settings", ())]
    return "; ".join(reasons)


def _format_config(report: dict[str, Any] | None) -> list[str]:
    """Format the faults of the configuration file, with the first diagnostic."""
    words = describe_report(report, time.time()) if report is not None else None
    if report is None or words is None:
        return []
    style = "yellow" if report["state"] == ConfigState.VALID else "red"
    lines = [paint(replace_unprintable(words), style)]
    lines += [
        f"  {replace_unprintable(format_reported(each))}" for each in report["diagnostics"][:1]
    ]
    if report["file"] and report["errors"] + report["warnings"] > 1:
        lines.append(f"  for all of them, run: cogwork config check {report['file']}")
    return lines


def _format_modules(modules: list[dict[str, Any]]) -> list[str]:
    rows = [
        (
            each["state"],
            f"module {each['name']}",
            f"process {each['pid']}" if each.get("pid") else "",
            _format_since(each),
            each["reason"] or "",
        )
        for each in modules
    ]
    return _align_rows(rows)


def _format_processes(processes: list[dict[str, Any]]) -> list[str]:
    # List processes that need attention last, as for resources.
    ordered = sorted(processes, key=lambda process: process["state"] == "unhealthy")
    rows = [
        (
            each["state"],
            f"process {each['id']}",
            ", ".join(_describe_process(each)),
            _format_age(each["since"]),
            each["reason"] or "",
        )
        for each in ordered
    ]
    return _align_rows(rows)


def _format_packages(packages: list[dict[str, Any]]) -> list[str]:
    """Format the packages that are not ready."""
    rows = [
        (
            "unhealthy" if each["state"] == "failed" else each["state"],
            f"package {each['name']}",
            each["version"],
            _format_since(each),
            each["reason"] or _format_progress(each),
        )
        for each in packages
        if each["state"] != "ready"
    ]
    return _align_rows(rows)


def _describe_process(process: dict[str, Any]) -> Iterable[str]:
    if process["pid"]:
        yield f"process {process['pid']}"
    if restarts := process["restarts"]:
        yield "restarted once" if restarts == 1 else f"restarted {restarts} times"


def _format_progress(package: dict[str, Any]) -> str:
    done, total = package["done"], package["total"]
    if not total:
        return f"{done / 1e6:,.1f} MB" if done else ""
    return f"{100 * done // total} % of {total / 1e6:,.1f} MB"


def _align_rows(texts: Iterable[tuple[str, ...]]) -> list[str]:
    rows = [
        (*map(replace_unprintable, cells), replace_unprintable_lines(reason))
        for *cells, reason in texts
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    return [_format_row(row, widths) for row in rows]


def _format_job(job: dict[str, Any]) -> str:
    done = max(job["successes"], default=None)
    if has_failed_last(job):
        failed = max(job["failures"], key=lambda each: each["time"])
        reason = f": {failed['reason']}" if failed["reason"] else ""
        words, style = f"failed {_format_age(failed['time'])} ago{reason}", "red"
    else:
        words = f"succeeded {_format_age(done)} ago" if done is not None else "not run yet"
        style = "dim"
    return (
        f"{paint('job', style)}  {replace_unprintable(job['name'])}  {replace_unprintable(words)}"
    )


def _format_row(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    style = _STYLES.get(row[0], "yellow")
    return "  ".join([paint(cells[0], style), *cells[1:], row[-1]]).rstrip()


def _format_since(item: dict[str, Any]) -> str:
    """Format the age of a state; empty if the server does not report it."""
    since = item.get("since")
    return _format_age(since) if since is not None else ""


def _format_age(moment: float) -> str:
    return duration.render(max(0, round(time.time() - moment)))


def _choose_format(arguments: argparse.Namespace) -> str:
    """Return the format of --format, or else of the output file's suffix."""
    if arguments.format is not None:
        return str(arguments.format)
    suffix = Path(arguments.output or "").suffix.removeprefix(".")
    return suffix if suffix in ("dot", *IMAGE_FORMATS) else "text"


def _render_graph(resources: list[dict[str, Any]], form: str) -> bytes:
    if form == "json":
        return f"{format_json([_describe_node(each) for each in resources])}\n".encode()
    nodes = [
        DiagramNode(
            *(r["name"], r.get("model", ""), r["state"], r["reason"]),
            tuple(r.get("depends_on", ())),
        )
        for r in resources
    ]
    if form in IMAGE_FORMATS:
        return draw(as_dot(nodes), form)
    text = as_dot(nodes) if form == "dot" else as_text(nodes, paint)
    return f"{text}\n".encode(errors="backslashreplace")


def _describe_node(resource: dict[str, Any]) -> dict[str, Any]:
    optional: dict[str, Any] = {"model": None, "depends_on": []}
    keys = ("name", "model", "state", "reason", "depends_on")
    return {key: resource.get(key, optional.get(key)) for key in keys}

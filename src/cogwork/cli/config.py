"""`cogwork config check`, `diff` and `schema`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, paint, print_json
from cogwork.config import diff as difference
from cogwork.config import render
from cogwork.config.codes import UNREADABLE
from cogwork.config.file import LARGEST, Unreadable, decoded, read_text
from cogwork.config.json_schema import machine_schema
from cogwork.config.load import Loaded, load, load_nothing
from cogwork.config.surroundings import Surroundings
from cogwork.core.home import cogwork_home
from cogwork.drivers.table import builtin_models
from cogwork.resource.registry import Registry, plugged_in


def check(arguments: argparse.Namespace) -> int:
    registry = _registry()
    loaded = _load(arguments.file, registry)
    if arguments.json:
        print_json({"file": arguments.file, **_report(loaded, arguments.file)})
        return _exit_code(loaded)
    for fault in loaded.faults:
        print(render.as_text(fault, arguments.file, paint))
    if not _is_unreadable(loaded):
        print(_verdict(loaded, arguments.file, registry))
    return _exit_code(loaded)


def diff(arguments: argparse.Namespace) -> int:
    registry = _registry()
    old, new = (_load(file, registry) for file in (arguments.old, arguments.new))
    refused = old.refused or new.refused
    change = None if refused else difference.diff(old.checked, new.checked, registry)
    if arguments.json:
        print_json(
            {
                "old": {"file": arguments.old, **_report(old, arguments.old)},
                "new": {"file": arguments.new, **_report(new, arguments.new)},
                "change": difference.as_json(change) if change is not None else None,
            }
        )
    elif change is None:
        for file, side in ((arguments.old, old), (arguments.new, new)):
            _complain_if_refused(side, file)
    else:
        print(difference.as_text(change))
        if new.faults:
            found = render.summary(new.faults)
            print(f"{arguments.new} has {found}: cogwork config check {arguments.new}")
    return max(_exit_code(old), _exit_code(new)) if refused else _exit_code(new)


def schema(arguments: argparse.Namespace) -> int:
    del arguments
    print_json(machine_schema(_registry()))
    return FINE


def _registry() -> Registry:
    return Registry([*builtin_models(), *plugged_in()])


def _load(file: str, registry: Registry) -> Loaded:
    try:
        text = decoded(sys.stdin.buffer.read(LARGEST + 1)) if file == "-" else read_text(Path(file))
    except Unreadable as error:
        return load_nothing(error)
    return load(text, Surroundings(registry, cogwork_home(os.environ), os.environ))


def _report(loaded: Loaded, file: str) -> dict[str, Any]:
    return {
        "refused": loaded.refused,
        "diagnostics": [render.as_json(fault, file) for fault in loaded.faults],
    }


def _exit_code(loaded: Loaded) -> int:
    if _is_unreadable(loaded):
        return USAGE
    return FAULTS if loaded.has_errors else FINE


def _is_unreadable(loaded: Loaded) -> bool:
    return any(fault.diagnostic.code is UNREADABLE for fault in loaded.faults)


def _verdict(loaded: Loaded, file: str, registry: Registry) -> str:
    listed = loaded.checked.entries
    if not loaded.faults:
        return f"{file} is fine: {listed} resource{'' if listed == 1 else 's'}"
    found = render.summary(loaded.faults)
    # The worst first: what is a warning may be read later.
    worst = min((fault.diagnostic.code for fault in loaded.faults), key=lambda code: code.severity)
    explain = f"More: cogwork explain {worst.id}"
    if loaded.refused:
        return f"{found}; a machine refuses this file and keeps what it runs. {explain}"
    running = len(loaded.checked.specs) - len(difference.stuck(loaded.checked, registry))
    would = f"; {running} of {listed} resources would run" if listed else ""
    return f"{found}{would}. {explain}"


def _complain_if_refused(loaded: Loaded, file: str) -> None:
    if loaded.refused:
        for fault in loaded.faults:
            complain(render.as_text(fault, file))
        complain(f"{file} would be refused: mend it first")

"""`cogwork config check`, `diff` and `schema`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, paint, print_json
from cogwork.config import diff as difference
from cogwork.config import render
from cogwork.config.codes import UNREADABLE
from cogwork.config.file import Unreadable, read_text
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
        print_json(
            {
                "file": arguments.file,
                "refused": loaded.refused,
                "diagnostics": [render.as_json(fault, arguments.file) for fault in loaded.faults],
            }
        )
    else:
        for fault in loaded.faults:
            print(render.as_text(fault, arguments.file, paint))
        print(_verdict(loaded, arguments.file, registry))
    return _exit_code(loaded)


def diff(arguments: argparse.Namespace) -> int:
    registry = _registry()
    old, new = (_load(file, registry) for file in (arguments.old, arguments.new))
    if old.refused or new.refused:
        for file, side in ((arguments.old, old), (arguments.new, new)):
            _complain_if_refused(side, file)
        return max(_exit_code(old), _exit_code(new))
    change = difference.diff(old.checked, new.checked, registry)
    if arguments.json:
        print_json(difference.as_json(change))
        return FINE
    print(difference.as_text(change))
    if new.faults:
        found = render.summary(new.faults)
        print(f"{arguments.new} has {found}: cogwork config check {arguments.new}")
    return FINE


def schema(arguments: argparse.Namespace) -> int:
    del arguments
    print_json(machine_schema(_registry()))
    return FINE


def _registry() -> Registry:
    return Registry([*builtin_models(), *plugged_in()])


def _load(file: str, registry: Registry) -> Loaded:
    try:
        text = read_text(Path(file))
    except Unreadable as error:
        return load_nothing(error)
    return load(text, Surroundings(registry, cogwork_home(os.environ), os.environ))


def _exit_code(loaded: Loaded) -> int:
    if any(fault.diagnostic.code is UNREADABLE for fault in loaded.faults):
        return USAGE
    return FAULTS if loaded.has_errors else FINE


def _verdict(loaded: Loaded, file: str, registry: Registry) -> str:
    all_of_them = len(loaded.checked.specs)
    if not loaded.faults:
        return f"{file} is fine: {all_of_them} resource{'' if all_of_them == 1 else 's'}"
    found = render.summary(loaded.faults)
    explain = f"cogwork explain {loaded.faults[0].diagnostic.code.id}"
    if loaded.refused:
        return f"{found}; a machine refuses this file and keeps what it runs. More: {explain}"
    running = all_of_them - len(difference.stuck(loaded.checked, registry))
    return f"{found}; {running} of {all_of_them} resources would run. More: {explain}"


def _complain_if_refused(loaded: Loaded, file: str) -> None:
    if loaded.refused:
        for fault in loaded.faults:
            complain(render.as_text(fault, file))
        complain(f"{file} would be refused: mend it first")

"""`cogwork fleet config edit`."""

from __future__ import annotations

import argparse
import enum
import json
import re

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.confirmation import ask, confirm
from cogwork.cli.fleet.config.config_file import read_config_file
from cogwork.cli.fleet.config.config_plan import ConfigPlan
from cogwork.cli.fleet.config.config_update import EditConflict, save_config
from cogwork.cli.fleet.config.part_config import plan_change, print_plan
from cogwork.cli.fleet.config.revisions import read_text
from cogwork.cli.fleet.config.text_editor import TextEditor
from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_text
from cogwork.core.errors import CogworkError
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.timestamp_pb2 import Timestamp  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


class Decision(enum.Enum):
    SAVE = "y"
    EDIT = "e"
    QUIT = "n"


def edit(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        known = _read_known_update(arguments.last_known_update, part)
        if arguments.file is not None:
            return _save_file(client, part, known, arguments)
        return _edit(client, part, known, arguments)

    return with_fleet(run)


def _save_file(
    client: FleetClient, part: pb.RobotPart, known: Timestamp, arguments: argparse.Namespace
) -> int:
    text, file = read_config_file(arguments.file), arguments.file
    plan = _plan(part, text)
    if plan.before == plan.after:
        print_text(f"{part.name} already has this text")
        return EXIT_OK
    print_plan(plan, file, reveal=arguments.reveal)
    if _decide(plan, part.name, yes=arguments.yes, can_edit=False) is not Decision.SAVE:
        hint = f"; fix {file} and run the command again" if plan.has_errors else ""
        print_error(f"nothing was saved{hint}")
        return EXIT_FAILURE
    return _save(client, part, text, known, file)


def _edit(
    client: FleetClient, part: pb.RobotPart, known: Timestamp, arguments: argparse.Namespace
) -> int:
    offered = make_editable(read_text(part))
    editor = TextEditor(_make_file_name(part), offered)
    while True:
        text = editor.edit()
        if text == offered:
            editor.discard()
            print_text(f"no change; {part.name} keeps its configuration")
            return EXIT_OK
        plan = _plan(part, text)
        print_plan(plan, editor.file.name, reveal=arguments.reveal)
        try:
            decision = _decide(plan, part.name, yes=arguments.yes, can_edit=True)
            if decision is Decision.EDIT:
                continue
            if decision is Decision.QUIT:
                print_error(f"nothing was saved; your text is in {editor.file}")
                return EXIT_FAILURE
            code = _save(client, part, text, known, str(editor.file))
        except CogworkError:
            print_error(f"nothing was saved; your text is in {editor.file}")
            raise
        if code == EXIT_OK:
            editor.discard()
        return code


def _decide(plan: ConfigPlan, name: str, *, yes: bool, can_edit: bool) -> Decision:
    """Ask what to do with a text. If `yes`, save it without asking, unless it has errors."""
    if yes:
        return Decision.QUIT if plan.has_errors else Decision.SAVE
    if plan.is_refused:
        again = can_edit and confirm("It has errors. Edit it again?")
        return Decision.EDIT if again else Decision.QUIT
    # Allow the user to save a configuration with errors: the machine may know models that this
    # computer does not.
    errors = "It has errors. " if plan.has_errors else ""
    choices = "(y)es, (e)dit again, [N]o" if can_edit else "[y/N]"
    answer = ask(f"{errors}Save to {name}? {choices} ")[:1]
    if answer == Decision.EDIT.value and not can_edit:
        return Decision.QUIT
    return Decision(answer) if answer in (each.value for each in Decision) else Decision.QUIT


def _plan(part: pb.RobotPart, text: str) -> ConfigPlan:
    return plan_change(part, read_text(part), text)


def _save(client: FleetClient, part: pb.RobotPart, text: str, known: Timestamp, file: str) -> int:
    try:
        save_config(client, part, text, known)
    except EditConflict as error:
        print_error(
            f"{error}; your text is in {file}\n"
            f"  see what they changed:  cogwork fleet config diff {part.name}\n"
            f"  compare it with yours:  cogwork fleet config diff {part.name} --file {file}\n"
            f"  add their change, then: cogwork fleet config edit {part.name} --file {file}"
        )
        return EXIT_FAILURE
    print_text(f"saved the configuration of {part.name}")
    return EXIT_OK


def _read_known_update(text: str | None, part: pb.RobotPart) -> Timestamp:
    """Return the time of the last change that the user had seen before the edit. Raise
    CommandError."""
    if text is None:
        return part.last_updated
    known = Timestamp()
    try:
        known.FromJsonString(text)
    except ValueError:
        raise CommandError(
            f'"{text}" is not a time; copy last_updated from `cogwork fleet config show --json`'
        ) from None
    return known


def make_editable(text: str) -> str:
    """Return a text that is easy to edit: split a single line into several lines."""
    if "\n" in text.strip():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    except ValueError:
        return text


def _make_file_name(part: pb.RobotPart) -> str:
    return re.sub(r"[^\w-]+", "-", part.name)

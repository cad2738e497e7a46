"""`cogwork fleet config show`, `diff`, `history` and `restore`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from itertools import islice

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.config.secrets import make_redact
from cogwork.cli.confirmation import confirm
from cogwork.cli.fleet.config.config_file import read_config_file
from cogwork.cli.fleet.config.config_plan import ConfigPlan, make_plan
from cogwork.cli.fleet.config.config_update import EditConflict, save_config
from cogwork.cli.fleet.config.revisions import Revision, find_revision, read_revisions, read_text
from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.fleet.keys import name_editors
from cogwork.cli.fleet.listing import print_table
from cogwork.cli.table import format_age
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    paint,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.text.text_diff import mask_text
from cogwork.core.escape import escape
from cogwork.core.paths import cogwork_home
from cogwork.core.versions.named_version import is_another_make
from cogwork.logs.entry import format_timestamp
from cogwork.logs.secret_mask import STARS
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.json_format import MessageToDict  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_TAB_WIDTH = 4
_STYLES = {"+": "green", "-": "red", "@": "dim"}


def show(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        text = read_text(part)
        if arguments.revision is not None:
            text = find_revision(read_revisions(client, part), arguments.revision).text
        shown = text if arguments.reveal else mask_text(text, make_redact(text))
        if arguments.json:
            updated = part.last_updated.ToJsonString()
            print_json({"part": part.id, "last_updated": updated, "config": shown})
        elif sys.stdout.isatty():
            print_text(shown.rstrip("\n").expandtabs(_TAB_WIDTH))
        else:
            sys.stdout.write(shown)
        if shown != text:
            print_error("secrets are masked; for the text as it is, add --reveal-secrets")
        elif STARS in text:
            print_error("the cloud shows secrets to owners only, so they are masked")
        return EXIT_OK

    return with_fleet(run)


def diff(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        if arguments.file is not None and arguments.revision is not None:
            raise CommandError("compare with a file or a revision: give one of --file, --revision")
        part = find_part(client, arguments.part)
        before, after, title = _choose_texts(client, part, arguments)
        plan = plan_change(part, before, after)
        if arguments.json:
            print_json(plan.as_json(title))
        else:
            print_plan(plan, title, reveal=arguments.reveal)
        return EXIT_FAILURE if plan.has_errors else EXIT_OK

    return with_fleet(run)


def history(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        revisions = read_revisions(client, find_part(client, arguments.part))
        if arguments.json:
            print_json([_describe(each) for each in revisions])
        else:
            print_table(history_rows(revisions, name_editors(client), time.time()))
        return EXIT_OK

    return with_fleet(run)


def restore(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        part = find_part(client, arguments.part)
        wanted = find_revision(read_revisions(client, part), arguments.revision)
        if wanted.text == read_text(part):
            print_text(f"{part.name} already has the text of revision {wanted.number}")
            return EXIT_OK
        plan = plan_change(part, read_text(part), wanted.text)
        print_plan(plan, f"revision {wanted.number}", reveal=arguments.reveal)
        if not arguments.yes and not confirm(f"Restore revision {wanted.number} to {part.name}?"):
            print_error("nothing was saved")
            return EXIT_FAILURE
        try:
            save_config(client, part, wanted.text, part.last_updated)
        except EditConflict as error:
            again = f"cogwork fleet config restore {arguments.part} {wanted.number}"
            print_error(f"{error}; to see the change and decide again, run: {again}")
            return EXIT_FAILURE
        print_text(f"restored revision {wanted.number} to {part.name}")
        return EXIT_OK

    return with_fleet(run)


def plan_change(part: pb.RobotPart, before: str, after: str) -> ConfigPlan:
    """Check a text for the server that the part runs."""
    is_other = is_another_make(MessageToDict(part.user_supplied_info))
    return make_plan(before, after, cogwork_home(os.environ), is_another_make=is_other)


def print_plan(plan: ConfigPlan, file: str, *, reveal: bool) -> None:
    """Print the differences, the faults and the machine's plan."""
    print_difference(plan.format_difference(reveal=reveal))
    for fault in plan.format_faults(file, paint):
        print(fault)
    print()
    print(paint("On the machine:", "bold"))
    print_text(plan.format_steps())


def history_rows(
    revisions: Iterable[Revision], names: dict[str, str], now: float
) -> list[tuple[str, ...]]:
    rows = [
        (
            str(each.number),
            format_age(now - each.made_at) if each.made_at is not None else "-",
            names.get(each.editor, each.editor) or "-",
            each.change,
        )
        for each in revisions
    ]
    return [("REVISION", "AGE", "SAVED BY", "CHANGE"), *rows]


def _choose_texts(
    client: FleetClient, part: pb.RobotPart, arguments: argparse.Namespace
) -> tuple[str, str, str]:
    """Return the two texts to compare, and a name for the second one."""
    current = read_text(part)
    if arguments.file is not None:
        return current, read_config_file(arguments.file), arguments.file
    revisions = read_revisions(client, part)
    if arguments.revision is not None:
        revision = find_revision(revisions, arguments.revision)
        return current, revision.text, f"revision {revision.number}"
    newest, *before = islice(revisions, 2)
    previous = before[0] if before else newest
    return previous.text, current, f"revision {newest.number}"


def _describe(revision: Revision) -> dict[str, object]:
    return {
        "revision": revision.number,
        "saved_at": format_timestamp(revision.made_at) if revision.made_at is not None else None,
        "saved_by": revision.editor or None,
        "change": revision.change,
    }


def print_difference(difference: str) -> None:
    for line in difference.split("\n"):
        style = _STYLES.get(line[:1])
        print(paint(escape(line), style) if style else escape(line))

"""`cogwork fleet fragment create`, `edit` and `restore`."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.config.secrets import make_redact
from cogwork.cli.confirmation import confirm
from cogwork.cli.fleet.config.config_edit import make_editable
from cogwork.cli.fleet.config.config_file import read_config_file
from cogwork.cli.fleet.config.fragment_preview import format_preview
from cogwork.cli.fleet.config.fragments import find_fragment, find_old_text
from cogwork.cli.fleet.config.part_config import print_difference
from cogwork.cli.fleet.config.text_editor import TextEditor
from cogwork.cli.fleet.fleet_client import CloudRefused, FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_organization
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    paint,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.text.text_diff import diff_masked, diff_revealed
from cogwork.core.errors import CogworkError
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.fragment_method import PREVIEW, FragmentPreview, parse_preview

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


def create(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        organization = find_organization(client, arguments.org)
        request = pb.CreateFragmentRequest(name=arguments.name, organization_id=organization.id)
        try:
            request.config.update(json.loads(read_config_file(arguments.file)))
        except ValueError as error:
            raise CommandError(f"{arguments.file} is not a JSON object: {error}") from None
        made = client.call("CreateFragment", request, pb.CreateFragmentResponse).fragment
        if arguments.json:
            print_json({"id": made.id, "name": made.name})
        else:
            print_text(f"created fragment {made.name} with the ID {made.id}")
        return EXIT_OK

    return with_fleet(run)


def edit(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        fragment = find_fragment(client, arguments.fragment)
        if arguments.file is not None:
            return _save(client, fragment, read_config_file(arguments.file), arguments)
        if arguments.json:
            raise CommandError("--json cannot be used with an editor; add --file")
        return _edit(client, fragment, arguments)

    return with_fleet(run)


def restore(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        fragment = find_fragment(client, arguments.fragment)
        text = find_old_text(client, fragment, arguments.revision)
        return _save(client, fragment, text, arguments)

    return with_fleet(run)


def _edit(client: FleetClient, fragment: pb.Fragment, arguments: argparse.Namespace) -> int:
    offered = make_editable(fragment.fragment_config_json)
    editor = TextEditor(re.sub(r"[^\w-]+", "-", fragment.name), offered)
    while True:
        text = editor.edit()
        if text == offered:
            editor.discard()
            print_text(f"no change; {fragment.name} stays as it is")
            return EXIT_OK
        try:
            code = _save(client, fragment, text, arguments)
        except CloudRefused as error:
            print_error(str(error))
            if not arguments.yes and confirm("Edit it again?"):
                continue
            code = EXIT_FAILURE
        except CogworkError:
            print_error(f"your text is in {editor.file}")
            raise
        if code == EXIT_OK:
            editor.discard()
        else:
            print_error(f"your text is in {editor.file}")
        return code


def _save(
    client: FleetClient, fragment: pb.Fragment, text: str, arguments: argparse.Namespace
) -> int:
    """Show the effects of a text, ask, and save it. Return the exit code."""
    if text == fragment.fragment_config_json:
        print_text(f"{fragment.name} already has this text")
        return EXIT_OK
    request = pb.UpdateFragmentRequest(
        id=fragment.id,
        name=fragment.name,
        fragment_config_json=text,
        last_known_update=fragment.last_updated,
    )
    preview = parse_preview(client.call(PREVIEW, request, Struct))
    has_mistakes = any(each.mistakes for each in preview.changes)
    has_errors = any(each.errors for each in preview.changes)
    if not arguments.json:
        _print(fragment, text, preview, reveal=arguments.reveal)
    if has_mistakes:
        return _report(fragment, preview, arguments, "it would be a mistake on these machines")
    if has_errors and arguments.yes:
        return _report(
            fragment,
            preview,
            arguments,
            "it has errors; to save it nevertheless, use neither --yes nor --json",
        )
    if arguments.json and not arguments.yes:
        return _report(fragment, preview, arguments, "to save it, add --yes")
    question = f"{'It has errors. ' if has_errors else ''}Save to {fragment.name}?"
    if not arguments.yes and not confirm(question):
        return _report(fragment, preview, arguments, "")
    try:
        client.call("UpdateFragment", request, pb.UpdateFragmentResponse)
    except CloudRefused as error:
        if error.code is not grpc.StatusCode.FAILED_PRECONDITION:
            raise
        reason = f"someone else changed {fragment.name} in the meantime; run the command again"
        return _report(fragment, preview, arguments, reason)
    if arguments.json:
        print_json(_as_json(fragment, preview, is_saved=True))
    else:
        print_text(f"saved {fragment.name}")
    return EXIT_OK


def _print(fragment: pb.Fragment, text: str, preview: FragmentPreview, *, reveal: bool) -> None:
    before = make_editable(fragment.fragment_config_json)
    after = make_editable(text)
    difference = (
        diff_revealed(before, after)
        if reveal
        else diff_masked(before, after, make_redact(before, after))
    )
    print_difference(difference)
    print()
    for line in format_preview(preview, paint):
        print(line)


def _report(
    fragment: pb.Fragment, preview: FragmentPreview, arguments: argparse.Namespace, reason: str
) -> int:
    if arguments.json:
        print_json(_as_json(fragment, preview, is_saved=False))
    print_error(f"nothing was saved{f'; {reason}' if reason else ''}")
    return EXIT_FAILURE


def _as_json(fragment: pb.Fragment, preview: FragmentPreview, *, is_saved: bool) -> dict[str, Any]:
    return {"fragment": fragment.id, "saved": is_saved, **asdict(preview)}

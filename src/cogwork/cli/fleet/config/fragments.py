"""`cogwork fleet fragments`, and `fragment show` and `history`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.config.secrets import make_redact
from cogwork.cli.fleet.fleet_client import CloudRefused, FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_organization, list_organizations
from cogwork.cli.fleet.keys import name_editors
from cogwork.cli.fleet.listing import print_table
from cogwork.cli.fleet.selection import SelectionChoice, select
from cogwork.cli.table import format_age
from cogwork.cli.terminal import EXIT_OK, print_error, print_json, print_text
from cogwork.config.source.change_summary import summarize_change
from cogwork.config.text.text_diff import mask_text
from cogwork.logs.secret_mask import STARS
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VISIBILITIES = {1: "private", 2: "public", 3: "unlisted"}


def fragments(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        organization = find_organization(client, arguments.org)
        found = list_fragments(client, organization.id)
        if arguments.json:
            print_json([_describe(each) for each in found])
        elif not found:
            print_error(f"no fragments in {organization.name}")
        else:
            rows = [
                (each.name, each.revision, str(each.robot_part_count), _visibility(each), each.id)
                for each in found
            ]
            print_table([("NAME", "REVISION", "PARTS", "VISIBILITY", "ID"), *rows])
        return EXIT_OK

    return with_fleet(run)


def show(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        found = find_fragment(client, arguments.fragment, arguments.revision or "")
        text = found.fragment_config_json
        shown = text if arguments.reveal else mask_text(text, make_redact(text))
        if arguments.json:
            print_json({**_describe(found), "config": shown})
        elif sys.stdout.isatty():
            print_text(shown.rstrip("\n"))
        else:
            sys.stdout.write(shown)
        if shown != text:
            print_error("secrets are masked; for the text as it is, add --reveal-secrets")
        elif STARS in text:
            print_error("the cloud shows secrets to owners only, so they are masked")
        return EXIT_OK

    return with_fleet(run)


def history(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        fragment = find_fragment(client, arguments.fragment)
        revisions = [_describe_edit(each) for each in read_history(client, fragment.id)]
        if arguments.json:
            print_json(revisions)
            return EXIT_OK
        names, now = name_editors(client), time.time()
        rows = [
            (
                each["revision"],
                format_age(now - each["seconds"]),
                names.get(each["saved_by"], each["saved_by"]) or "-",
                each["change"],
            )
            for each in revisions
        ]
        print_table([("REVISION", "AGE", "SAVED BY", "CHANGE"), *rows])
        return EXIT_OK

    return with_fleet(run)


def list_fragments(client: FleetClient, organization: str) -> list[pb.Fragment]:
    """Return the fragments of an organization, without public fragments of other organizations."""
    request = pb.ListFragmentsRequest(organization_id=organization)
    return list(client.call("ListFragments", request, pb.ListFragmentsResponse).fragments)


def find_fragment(client: FleetClient, wanted: str, version: str = "") -> pb.Fragment:
    """Return the given revision of the fragment with this name or ID. Raise CommandError."""
    found = wanted
    if not _UUID.fullmatch(wanted):
        choices = (
            (SelectionChoice(each.id, (each.name,), f"of {organization.name}"), each.id)
            for organization in list_organizations(client)
            for each in list_fragments(client, organization.id)
        )
        found = select("fragment", wanted, choices, "cogwork fleet fragments")
    request = pb.GetFragmentRequest(id=found, version=version)
    return client.call("GetFragment", request, pb.GetFragmentResponse).fragment


def read_history(client: FleetClient, fragment: str) -> Iterator[pb.FragmentHistoryEntry]:
    """Yield the edits of a fragment, newest first, page by page."""
    request = pb.GetFragmentHistoryRequest(id=fragment, page_limit=100)
    while True:
        reply = client.call("GetFragmentHistory", request, pb.GetFragmentHistoryResponse)
        yield from reply.history
        if not reply.next_page_token:
            return
        request.page_token = reply.next_page_token


def find_old_text(client: FleetClient, fragment: pb.Fragment, revision: str) -> str:
    """Return the text of a revision. Raise CommandError if there is no such revision."""
    request = pb.GetFragmentRequest(id=fragment.id, version=revision)
    try:
        reply = client.call("GetFragment", request, pb.GetFragmentResponse)
    except CloudRefused as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        raise CommandError(
            f'{fragment.name} has no revision "{revision}"; list them with: cogwork fleet fragment '
            "history FRAGMENT"
        ) from None
    return reply.fragment.fragment_config_json


def _describe(fragment: pb.Fragment) -> dict[str, Any]:
    return {
        "id": fragment.id,
        "name": fragment.name,
        "revision": fragment.revision,
        "parts": fragment.robot_part_count,
        "visibility": _visibility(fragment),
        "last_updated": fragment.last_updated.ToJsonString(),
    }


def _describe_edit(edit: pb.FragmentHistoryEntry) -> dict[str, Any]:
    """Describe a revision. Omit its text, because all texts together may not fit into memory."""
    return {
        "revision": edit.revision,
        "saved_at": edit.edited_on.ToJsonString(),
        "seconds": edit.edited_on.ToMicroseconds() / 1e6,
        "saved_by": edit.edited_by.value,
        "change": _summarize(edit),
    }


def _summarize(edit: pb.FragmentHistoryEntry) -> str:
    if not edit.HasField("old"):
        return "created" if edit.revision == "1" else "the oldest that the cloud has"
    if edit.old.fragment == edit.config:
        return "name, visibility or formatting"
    before, after = (json.dumps(MessageToDict(each)) for each in (edit.old.fragment, edit.config))
    return summarize_change(before, after)


def _visibility(fragment: pb.Fragment) -> str:
    return _VISIBILITIES.get(fragment.visibility, "-")

"""`cogwork fleet keys`, and `cogwork fleet key create`, `delete` and `rotate`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import grpc

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.confirmation import confirm
from cogwork.cli.fleet.fleet_client import CloudRefused, FleetClient, with_fleet
from cogwork.cli.fleet.inventory import (
    find_location,
    find_machine,
    find_organization,
    list_locations,
    list_machines,
    list_organizations,
)
from cogwork.cli.fleet.listing import print_table
from cogwork.cli.fleet.selection import SelectionChoice, select
from cogwork.cli.fleet.stored_login import LoginStore, read_variables
from cogwork.cli.table import format_age
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_json, print_text
from cogwork.logs.entry import format_timestamp
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_KINDS = {"robot": "machine"}
"""The names that users see, for resource types that have another name in the API."""


def keys(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        organization = find_organization(client, arguments.org)
        found = _list_keys(client, organization)
        if arguments.json:
            print_json([_describe_key(each) for each in found])
        else:
            names = _list_resource_names(client, organization)
            print_table(key_rows(found, names, client.login.key_id, time.time()))
        return EXIT_OK

    return with_fleet(run)


def create(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        grant = _make_grant(client, arguments)
        request = pb.CreateKeyRequest(name=arguments.name, authorizations=[grant])
        made = client.call("CreateKey", request, pb.CreateKeyResponse)
        if arguments.json:
            print_json({"id": made.id, "key": made.key, "name": arguments.name})
            return EXIT_OK
        kind = _KINDS.get(grant.resource_type, grant.resource_type)
        print_text(
            f"created a key with the role {arguments.role} on the {kind}; it is shown only once:\n"
            f"  key ID: {made.id}\n  key:    {made.key}\n"
            f"Its holder logs in with: cogwork fleet login {client.login.url} --key-id {made.id}"
        )
        return EXIT_OK

    return with_fleet(run)


def delete(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        key = _find_key(client, arguments.key)
        own = " It is the key that you are logged in with." * _is_own(client, key)
        if not arguments.yes and not confirm(
            f"Delete the key {key.name} ({key.id})? Its holders can no longer log in.{own}"
        ):
            print_error("nothing was deleted")
            return EXIT_FAILURE
        client.call("DeleteKey", pb.DeleteKeyRequest(id=key.id), pb.DeleteKeyResponse)
        print_text(f"deleted the key {key.name} ({key.id})")
        if _is_own(client, key) and read_variables(os.environ) is None:
            LoginStore.of(os.environ).delete()
            print_text("you are logged out; log in with another key: cogwork fleet login URL")
        return EXIT_OK

    return with_fleet(run)


def rotate(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        key = _find_key(client, arguments.key)
        if not arguments.yes and not confirm(
            f"Replace the secret of the key {key.name} ({key.id})? The present one ends at once."
        ):
            print_error("nothing was changed")
            return EXIT_FAILURE
        made = client.call("RotateKey", pb.RotateKeyRequest(id=key.id), pb.RotateKeyResponse)
        if arguments.json:
            print_json({"id": made.id, "key": made.key, "name": key.name})
        else:
            print_text(
                f"the key {key.name} has a new secret, which is shown only once:\n"
                f"  key ID: {made.id}\n  key:    {made.key}"
            )
        if _is_own(client, key) and read_variables(os.environ) is None:
            LoginStore.of(os.environ).save(replace(client.login, key=made.key))
            print_error("your stored login has the new secret")
        return EXIT_OK

    return with_fleet(run)


def key_rows(
    found: Sequence[pb.APIKeyWithAuthorizations], names: Mapping[str, str], own: str, now: float
) -> list[tuple[str, ...]]:
    rows = [
        (
            each.api_key.name + " (yours)" * (each.api_key.id == own),
            "; ".join(_describe_role(role, names) for role in each.authorizations) or "no role",
            format_age(now - each.api_key.created_on.ToMicroseconds() / 1e6),
            each.api_key.id,
        )
        for each in found
    ]
    return [("NAME", "ROLES", "AGE", "ID"), *rows]


def name_keys(client: FleetClient, organizations: Sequence[pb.Organization]) -> dict[str, str]:
    """Return the names of keys by ID."""
    return {
        each.api_key.id: each.api_key.name
        for organization in organizations
        for each in _list_keys(client, organization)
    }


def name_editors(client: FleetClient) -> dict[str, str]:
    """Return the names of all keys that the user may see, by ID."""
    try:
        return name_keys(client, list_organizations(client))
    except CloudRefused as error:
        if error.code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED):
            return {}
        raise


def _describe_role(role: pb.AuthorizationDetails, names: Mapping[str, str]) -> str:
    kind = _KINDS.get(role.resource_type, role.resource_type)
    name = role.authorization_id.rpartition("_")[2]
    return f"{name} of {kind} {names.get(role.resource_id, role.resource_id)}"


def _describe_key(found: pb.APIKeyWithAuthorizations) -> dict[str, Any]:
    created = format_timestamp(found.api_key.created_on.ToMicroseconds() / 1e6)
    roles = [
        {
            "role": each.authorization_id.rpartition("_")[2],
            "type": _KINDS.get(each.resource_type, each.resource_type),
            "id": each.resource_id,
        }
        for each in found.authorizations
    ]
    return {
        "id": found.api_key.id,
        "name": found.api_key.name,
        "created": created,
        "roles": roles,
    }


def _list_keys(
    client: FleetClient, organization: pb.Organization
) -> Sequence[pb.APIKeyWithAuthorizations]:
    request = pb.ListKeysRequest(org_id=organization.id)
    return client.call("ListKeys", request, pb.ListKeysResponse).api_keys


def _list_resource_names(client: FleetClient, organization: pb.Organization) -> dict[str, str]:
    names = {organization.id: organization.name}
    names |= {each.id: each.name for each in list_locations(client, organization)}
    names |= {each.robot.id: each.robot.name for each in list_machines(client)}
    return names


def _find_key(client: FleetClient, wanted: str) -> pb.APIKey:
    choices = [
        (SelectionChoice(each.api_key.id, (each.api_key.name,), organization.name), each.api_key)
        for organization in list_organizations(client)
        for each in _list_keys(client, organization)
    ]
    return select("key", wanted, choices, "cogwork fleet keys")


def _is_own(client: FleetClient, key: pb.APIKey) -> bool:
    return bool(key.id == client.login.key_id)


def _make_grant(client: FleetClient, arguments: argparse.Namespace) -> pb.Authorization:
    scopes = (arguments.machine, arguments.location, arguments.org)
    if sum(each is not None for each in scopes) > 1:
        raise CommandError(
            "a role applies to one machine, location or organization: give one of --machine, "
            "--location, --org"
        )
    if arguments.machine is not None:
        kind, resource = "robot", find_machine(client, arguments.machine).robot.id
    elif arguments.location is not None:
        kind, resource = "location", find_location(client, arguments.location).id
    else:
        kind, resource = "organization", find_organization(client, arguments.org).id
    return pb.Authorization(
        authorization_type="role",
        authorization_id=f"{kind}_{arguments.role}",
        resource_type=kind,
        resource_id=resource,
        identity_type="api-key",
    )

"""The history of a part: every revision comes back byte for byte, and no edit is lost."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.cloud.fleet import make_part
from tests.support.cloud.in_process_cloud import InProcessCloud
from tests.support.sizes import size
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.app_grpc import AppServiceStub

from cogwork.cloud.fleet.part_configs import update_robot_part
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values

REVISIONS = size(ci=30, full=100)
LARGE_EDITS, LARGE_SIZE = size(ci=6, full=60), size(ci=600_000, full=1_900_000)
MAX_REPLY = 4 << 20
"""Bytes that clients of gRPC accept by default."""
YEAR = 365 * 24 * 3600 * 1_000_000
ROUNDS = size(ci=10, full=50)
PAGE = 7
STRINGS = ("", "größe", "速度", "🤖", "\u2028", 'a"b\\c/', "tab\tline\n", "\x7f")
ESCAPED = ('"\\u00e9"', '"\\ud83e\\udd16"', '"\\/"', '"\\u0000"')
NUMBERS = ("0", "-0", "1.50", "2E+3", "1e-7", "9007199254740993", "12345678901234567890", "-0.0")


@pytest.fixture
async def client(empty_cloud: InProcessCloud) -> AppClient:
    connected = await empty_cloud.connect()
    return connected.app_client


async def test_every_revision_is_restored_byte_for_byte(client: AppClient) -> None:
    part, chance = await make_part(client), random.Random(7)
    texts = [write_unusual_config(chance, number) for number in range(REVISIONS)]
    for text in texts:
        await client.update_robot_part(part, "press-main", robot_config_json=text)
    saved = ["{}", *texts]
    # The SDK reads one page, which has all of these.
    for entry in await client.get_robot_part_history(part):
        assert entry.old is not None
        saved.append(await restore(client, part, entry.old.robot_config_json or ""))
    saved.append(await restore(client, part, texts[-1]))
    assert {*saved} == {"{}", *texts}
    assert len({*texts}) == REVISIONS
    history = await read_history(client, part)
    assert [each.old.robot_config_json for each in reversed(history)] == saved[:-1]
    times = [each.when.ToNanoseconds() for each in history]
    assert times == sorted(times, reverse=True)
    print(f"{REVISIONS} revisions restored, {len(history)} entries of history")


async def test_large_revisions_come_in_pages_that_clients_accept(client: AppClient) -> None:
    part = await make_part(client)
    texts = [json.dumps({"x": f"{number:02}" * (LARGE_SIZE // 2)}) for number in range(LARGE_EDITS)]
    for text in texts:
        await client.update_robot_part(part, "press-main", robot_config_json=text)
    found: list[pb.RobotPartHistoryEntry] = []
    request = pb.GetRobotPartHistoryRequest(id=part, page_limit=1000)
    while True:
        stub = AppServiceStub(client._channel)
        page = await stub.GetRobotPartHistory(request, metadata=client._metadata)
        assert page.ByteSize() < MAX_REPLY
        found += page.history
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert [each.old.robot_config_json for each in reversed(found)] == ["{}", *texts[:-1]]
    numbers = [each.old.user_supplied_info["revision"] for each in reversed(found)]
    assert numbers == list(range(LARGE_EDITS))
    await restore(client, part, found[-2].old.robot_config_json)


@pytest.mark.parametrize("token", ["x", "-1", "٣", "9" * 30])
async def test_invalid_page_token_is_explained(client: AppClient, token: str) -> None:
    part = await make_part(client)
    request = pb.GetRobotPartHistoryRequest(id=part, page_token=token)
    with pytest.raises(GRPCError, match="the page token is not valid") as refused:
        await AppServiceStub(client._channel).GetRobotPartHistory(
            request, metadata=client._metadata
        )
    assert refused.value.status is Status.INVALID_ARGUMENT


async def test_history_has_the_last_1000_revisions_and_those_of_a_year(
    empty_cloud: InProcessCloud, client: AppClient
) -> None:
    part, context = await make_part(client), empty_cloud.context
    actor = Actor(ActorType.API_KEY, empty_cloud.owner[0])

    def save(tx: Transaction, numbers: range, now: int) -> list[int]:
        for number in numbers:
            text = json.dumps({"revision": str(number)})
            request = pb.UpdateRobotPartRequest(id=part, name="m", robot_config_json=text)
            update_robot_part(tx, replace(context.make_call(actor), now=now), request)
        return sorted(
            query_values(tx, int, "SELECT revision FROM part_history WHERE part_id = ?", part)
        )

    async def edit(first: int, count: int, now: int) -> list[int]:
        """Make edits at one time, and return the revisions in the history."""
        for start in range(first, first + count, 100):
            numbers = range(start, min(start + 100, first + count))
            kept = await context.records.write(partial(save, numbers=numbers, now=now))
        return kept

    now = context.now()
    assert await edit(0, 1100, now) == list(range(1100)), "a year is kept"
    late = now + YEAR
    assert await edit(1100, 1, late) == list(range(1101)), "a leap year is kept"
    later = now + YEAR + YEAR // 300
    kept = await edit(1101, 50, later)
    assert kept[-1000:] == list(range(151, 1151)), "1,000 revisions are kept"
    assert len(kept) < 1010, "older ones are removed"
    history = await read_history(client, part)
    assert [each.old.user_supplied_info["revision"] for each in history] == kept[::-1]


async def test_of_two_collaborators_each_conflict_is_told_to_one(
    empty_cloud: InProcessCloud, client: AppClient
) -> None:
    part = await make_part(client)
    (organization,) = await client.list_organizations()
    role = APIKeyAuthorization("owner", "organization", organization.id)
    key, key_id = await client.create_key(organization.id, [role], "second")
    second = await empty_cloud.connect(key_id, key)
    people = {empty_cloud.owner[0]: client, key_id: second.app_client}
    wins: Counter[str] = Counter()
    for number in range(ROUNDS):
        # Both have read the same state.
        edits = [await prepare_edit(app, part, f"{who} {number}") for who, app in people.items()]
        outcomes = await asyncio.gather(*(edit() for edit in edits))
        assert sorted(outcomes) == [False, True]
        winner, loser = people if outcomes[0] else reversed(people)
        wins[winner] += 1
        again = await prepare_edit(people[loser], part, f"{loser} {number}")
        assert await again()
    saved = json.loads((await client.get_robot_part(part)).robot_config_json or "")["log"]
    assert sorted(each["pattern"] for each in saved) == sorted(
        f"{who} {number}" for who in people for number in range(ROUNDS)
    )
    history = await read_history(client, part)
    assert len(history) == 2 * ROUNDS
    states = [json.loads(each.old.robot_config_json).get("log", []) for each in reversed(history)]
    # Each edit adds one line to the state before it, and is signed by who wrote the line.
    assert [*states, saved] == [saved[:count] for count in range(2 * ROUNDS + 1)]
    editors = [each.edited_by.value for each in reversed(history)]
    assert editors == [each["pattern"].split()[0] for each in saved]
    print(f"{ROUNDS} rounds, {ROUNDS} conflicts, won by {sorted(wins.values())}")


async def restore(client: AppClient, part: str, text: str) -> str:
    """Save what the history has, as people do, and return what the part has then."""
    await client.update_robot_part(part, "press-main", robot_config_json=text)
    found = (await client.get_robot_part(part)).robot_config_json
    assert found is not None
    assert found.encode() == text.encode()
    return found


async def read_history(client: AppClient, part: str) -> list[pb.RobotPartHistoryEntry]:
    """Return all entries, newest first, page by page."""
    found: list[pb.RobotPartHistoryEntry] = []
    request = pb.GetRobotPartHistoryRequest(id=part, page_limit=PAGE)
    while True:
        stub = AppServiceStub(client._channel)
        page = await stub.GetRobotPartHistory(request, metadata=client._metadata)
        found += page.history
        if not page.next_page_token:
            return found
        assert len(page.history) == PAGE
        request.page_token = page.next_page_token


async def prepare_edit(app: AppClient, part: str, line: str) -> Callable[[], Any]:
    """Read a configuration, and return an edit of it that returns whether it was accepted."""
    known = await app.get_robot_part(part)
    config = json.loads(known.robot_config_json or "{}")
    config.setdefault("log", []).append({"pattern": line, "level": "info"})

    async def edit() -> bool:
        try:
            text = json.dumps(config)
            await app.update_robot_part(part, known.name, None, known.last_updated, text)
        except GRPCError as error:
            if error.status is not Status.FAILED_PRECONDITION:
                raise
            return False
        return True

    return edit


def write_unusual_config(chance: random.Random, number: int) -> str:
    """Return JSON that no program would write like this."""

    def space() -> str:
        return "".join(chance.choices((" ", "\t", "\n", "\r\n", ""), k=chance.randrange(4)))

    def write(depth: int) -> str:
        match chance.randrange(6 if depth < 4 else 4):
            case 0:
                return chance.choice(NUMBERS)
            case 1:
                return chance.choice(("true", "false", "null"))
            case 2:
                return json.dumps(chance.choice(STRINGS), ensure_ascii=chance.random() < 0.5)
            case 3:
                return chance.choice(ESCAPED)
            case 4:
                items = (write(depth + 1) for _ in range(chance.randrange(4)))
                return f"[{space()}{f'{space()},{space()}'.join(items)}{space()}]"
            case _:
                return write_object(depth, [f"k{chance.randrange(99)}" for _ in range(3)])

    def write_object(depth: int, keys: list[str]) -> str:
        pairs = (
            f"{json.dumps(key, ensure_ascii=False)}{space()}:{space()}{write(depth + 1)}"
            for key in keys
        )
        return f"{{{space()}{f'{space()},{space()}'.join(pairs)}{space()}}}"

    keys = [f"zz{number}", "größe", *(f"a{chance.randrange(1000)}" for _ in range(4)), "0"]
    chance.shuffle(keys)
    return f"{space()}{write_object(0, keys)}{space()}"

"""Parts as their owners see them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cloud.cloud_at_rest import add_machine, new_cloud, open_plane
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.parts import create_robot_part_secret, get_robot_part
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction


async def test_part_without_a_secret_is_shown_and_gets_another(tmp_path: Path) -> None:
    directory, new = new_cloud(tmp_path / "cloud")
    async with open_plane(directory) as plane:
        part_id, _ = await add_machine(plane, new.key_id)
        call = plane.context.make_call(Actor(ActorType.API_KEY, new.key_id))

        def work(tx: Transaction) -> None:
            tx.execute("DELETE FROM secret WHERE owner_id = ?", part_id)
            found = get_robot_part(tx, call, pb.GetRobotPartRequest(id=part_id))
            assert (found.part.secret, len(found.part.secrets)) == ("", 0)
            assert "secret" not in json.loads(found.config_json)["cloud"]
            request = pb.CreateRobotPartSecretRequest(part_id=part_id)
            assert create_robot_part_secret(tx, call, request).part.secret

        await plane.context.records.write(work)

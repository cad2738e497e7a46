"""A machine that is hostile to those whose remote it is: `hostile_remote.py PORT FILE MODE COUNT`.

`many`: it lists so many resources and frames. `changing`: all of them have other names each time.
`flapping`: as `many`, and it closes every connection after a second. Until the file exists, it
lists one resource.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from itertools import count
from pathlib import Path
from typing import Any

import grpc
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

Reply = Callable[[], bytes]
FLAP_INTERVAL = 1.0


def list_names(prefix: str, number: int) -> bytes:
    resources = [
        common.ResourceName(
            namespace="rdk", type="component", subtype="sensor", name=f"{prefix}{index}"
        )
        for index in range(number)
    ]
    return bytes(robot.ResourceNamesResponse(resources=resources).SerializeToString())


def list_frames(prefix: str, number: int) -> bytes:
    """Each frame is attached to the one before, so that finding its place takes long."""
    configs = [
        robot.FrameSystemConfig(
            frame=common.Transform(
                reference_frame=f"{prefix}{index}",
                pose_in_observer_frame=common.PoseInFrame(
                    reference_frame=f"{prefix}{index - 1}" if index else "world",
                    pose=common.Pose(o_z=1),
                ),
            )
        )
        for index in range(number)
    ]
    return bytes(robot.FrameSystemConfigResponse(frame_system_configs=configs).SerializeToString())


def make_replies(trigger: Path, mode: str, number: int) -> dict[str, Reply]:
    turns = count()
    calm = list_names("s", 1)
    names, frames = list_names("s", number), list_frames("s", number)

    def reply_names() -> bytes:
        if not trigger.exists():
            return calm
        return list_names(f"s{next(turns)}-", number) if mode == "changing" else names

    def reply_frames() -> bytes:
        if not trigger.exists():
            return b""
        return list_frames(f"s{next(turns)}-", number) if mode == "changing" else frames

    return {"ResourceNames": reply_names, "FrameSystemConfig": reply_frames}


class Handler(grpc.GenericRpcHandler):
    def __init__(self, replies: dict[str, Reply]) -> None:
        self._replies = replies

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method.rpartition("/")[2]
        reply = self._replies.get(method, lambda: b"")
        return grpc.unary_unary_rpc_method_handler(lambda *_: reply())


def start(port: int, replies: dict[str, Reply]) -> grpc.Server:
    options = [("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 1)]
    pool = futures.ThreadPoolExecutor(4)
    server = grpc.server(pool, handlers=[Handler(replies)], options=options)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def main(port: int, trigger: Path, mode: str, number: int) -> None:
    replies = make_replies(trigger, mode, number)
    server = start(port, replies)
    print("listening", flush=True)
    while mode == "flapping":
        time.sleep(FLAP_INTERVAL)
        if trigger.exists():
            server.stop(None).wait()
            server = start(port, replies)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))

"""Runs an operation, and publishes afterwards what follows from it."""

from __future__ import annotations

from google.protobuf.message import Message

from cogwork.cloud.context import CloudContext
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.operation import Call, Operation
from cogwork.cloud.storage.bus import part_topic
from cogwork.cloud.storage.records import Transaction


async def run_operation(
    context: CloudContext, operation: Operation, actor: Actor, request: Message
) -> Message:
    def work(tx: Transaction) -> tuple[Message, Call]:
        # A new one for each attempt, because a transaction may run again.
        call = context.make_call(actor)
        return operation.answer(tx, call, request), call

    if not operation.is_write:
        reply, _ = await context.records.read(work)
        return reply
    reply, call = await context.records.write(work)
    if call.ended_credentials:
        context.actors.forget(set(call.ended_credentials))
    for part in dict.fromkeys(call.changed_parts):
        context.bus.publish(part_topic(part), b"")
    return reply

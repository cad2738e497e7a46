"""Runs an operation, and then publishes its effects."""

from __future__ import annotations

from google.protobuf.message import Message

from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.operation import Call, CloudOperation
from cogwork.cloud.storage.bus import describe_change, part_topic
from cogwork.cloud.storage.records import Transaction


async def run_operation(
    context: CloudContext, operation: CloudOperation, actor: Actor, request: Message
) -> Message:
    def work(tx: Transaction) -> tuple[Message, Call]:
        # Make a new call for each attempt, because a transaction may run several times.
        call = context.make_call(actor)
        return operation.answer(tx, call, request), call

    if not operation.is_write:
        reply, _ = await context.records.read(work)
        return reply
    # Publish committed changes even if the caller no longer waits for the reply.
    reply, _ = await context.records.write(work, lambda result: _follow(context, result[1]))
    return reply


def _follow(context: CloudContext, call: Call) -> None:
    """End the calls of removed credentials, and notify the affected machines."""
    ended = dict.fromkeys(call.ended_credentials)
    if ended:
        context.actors.forget(ended)
        context.calls.end(ended)
    for each in ended:
        context.watch.end_conflict(each)
    change = describe_change(ended)
    for part in dict.fromkeys(call.changed_parts):
        context.bus.publish(part_topic(part), change)

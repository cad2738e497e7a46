"""Runs an operation, and publishes afterwards what follows from it."""

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
        # A new one for each attempt, because a transaction may run again.
        call = context.make_call(actor)
        return operation.answer(tx, call, request), call

    if not operation.is_write:
        reply, _ = await context.records.read(work)
        return reply
    # What was committed must follow, even if the caller does not wait for it.
    reply, _ = await context.records.write(work, lambda result: _follow(context, result[1]))
    return reply


def _follow(context: CloudContext, call: Call) -> None:
    """End the calls of removed credentials, and tell the machines that a change concerns."""
    ended = dict.fromkeys(call.ended_credentials)
    if ended:
        context.actors.forget(ended)
        context.calls.end(ended)
    for each in ended:
        context.watch.end_conflict(each)
    change = describe_change(ended)
    for part in dict.fromkeys(call.changed_parts):
        context.bus.publish(part_topic(part), change)

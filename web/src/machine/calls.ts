/** Calls of any method, with JSON in and out. */

import type { RobotClient } from '@viamrobotics/sdk';
import type { JsonObject } from '../lib/json';
import type { Method, Service } from './service_type';

const TIMEOUT = 30_000;
const UNARY = 0;

type Message = { toJson: (options: { emitDefaultValues: boolean }) => unknown };
type Unary = (request: object, options: object) => Promise<Message>;
type Streaming = (request: object, options: object) => AsyncIterable<Message>;

/** Returns the replies as JSON: one, or the first ones of a stream. */
export async function callMethod(
  robot: RobotClient,
  service: Service,
  method: Method,
  request: JsonObject,
  mostMessages = 1,
): Promise<unknown[]> {
  const message = method.I.fromJson(request);
  const client = robot.createServiceClient(service) as unknown as Record<string, Unary | Streaming>;
  const call = client[findKey(service, method)]!;
  if (method.kind === UNARY) return [toJson(await (call as Unary)(message, { timeoutMs: TIMEOUT }))];
  return readStream((signal) => (call as Streaming)(message, { signal }), mostMessages);
}

async function readStream(start: (signal: AbortSignal) => AsyncIterable<Message>, mostMessages: number): Promise<unknown[]> {
  const replies: unknown[] = [];
  const ended = new AbortController();
  const deadline = AbortSignal.timeout(TIMEOUT);
  try {
    for await (const reply of start(AbortSignal.any([ended.signal, deadline]))) {
      replies.push(toJson(reply));
      if (replies.length >= mostMessages) break;
    }
  } catch (error) {
    // What arrived before the deadline is worth showing.
    if (!deadline.aborted || replies.length === 0) throw error;
  } finally {
    ended.abort();
  }
  return replies;
}

/** Calls a method of a service by its name, and returns its reply as JSON, of which the caller knows the type. */
export async function callByName<T>(robot: RobotClient, service: Service, name: string, request: JsonObject): Promise<T> {
  const method = Object.values(service.methods).find((each) => each.name === name);
  if (method === undefined) throw new Error(`the machine's ${service.typeName} has no method ${name}`);
  return (await callMethod(robot, service, method, request))[0] as T;
}

function findKey(service: Service, method: Method): string {
  return Object.keys(service.methods).find((each) => service.methods[each] === method)!;
}

function toJson(message: Message): unknown {
  return message.toJson({ emitDefaultValues: true });
}

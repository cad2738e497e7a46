/** Requests as JSON: what a method takes, and which methods to offer. */

import { mayCall, requiredRole } from '../../machine/roles';
import type { MessageType, Method, Service } from '../../machine/service_type';
import type { Role } from '../../machine/status';

const MAX_DEPTH = 4;
const CLIENT_STREAMING = 2;
const [BOOL, STRING, BYTES] = [8, 9, 12] as const;
/** Types of 64 bits, which are strings in the JSON of protobuf. */
const LONG = new Set([3, 4, 6, 16, 18]);

/** Whether the method changes nothing. What a method of a module does, is not known. */
export function isReading(service: Service, method: Method): boolean {
  return requiredRole(service.typeName, method.name) === 'viewer';
}

/** Methods that the role may call with a request in one piece, those that only read first. */
export function listMethods(service: Service, role: Role): Method[] {
  return Object.values(service.methods)
    .filter((each) => each.kind < CLIENT_STREAMING && mayCall(role, service.typeName, each.name))
    .toSorted((a, b) => Number(isReading(service, b)) - Number(isReading(service, a)) || a.name.localeCompare(b.name));
}

/** Fields that a request may leave out. */
export function listOptionalFields(type: MessageType): string[] {
  return type.fields
    .list()
    .filter(isOptional)
    .map((each) => each.jsonName);
}

/** A request with every field that is not optional, the name filled in. Of each oneof, the first choice is shown. */
export function makeTemplate(type: MessageType, name: string): object {
  const template = fillFields(type, 0) as Record<string, unknown>;
  return 'name' in template ? { ...template, name } : template;
}

function fillFields(type: MessageType, depth: number): object {
  const chosen = new Set<string>();
  const entries: [string, unknown][] = [];
  for (const field of type.fields.list()) {
    if (isOptional(field)) continue;
    if (field.oneof) {
      if (chosen.has(field.oneof.name)) continue;
      chosen.add(field.oneof.name);
    }
    entries.push([field.jsonName, field.repeated ? [] : fillField(field, depth)]);
  }
  return Object.fromEntries(entries);
}

type Field = ReturnType<MessageType['fields']['list']>[number];

function isOptional(field: Field): boolean {
  return 'opt' in field && field.opt === true;
}

function fillField(field: Field, depth: number): unknown {
  if (field.kind === 'map') return {};
  if (field.kind === 'enum') return field.T.values[0]?.name ?? 0;
  if (field.kind === 'scalar') return fillScalar(field.T);
  const type = field.T;
  if (type.typeName === 'google.protobuf.Struct') return {};
  if (type.typeName === 'google.protobuf.Timestamp') return '1970-01-01T00:00:00Z';
  if (type.typeName === 'google.protobuf.Duration') return '0s';
  return depth < MAX_DEPTH ? fillFields(type, depth + 1) : {};
}

function fillScalar(type: number): unknown {
  if (type === STRING || type === BYTES) return '';
  if (type === BOOL) return false;
  return LONG.has(type) ? '0' : 0;
}

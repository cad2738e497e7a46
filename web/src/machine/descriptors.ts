/** Builds the messages and methods of a service from protobuf descriptors. */

import { Duration, Struct, Timestamp } from '@viamrobotics/sdk';
import type { MessageType, Method, Service } from './service_type';

const protobuf = Struct.runtime;
type FieldList = Extract<Parameters<typeof protobuf.makeMessageType>[1], () => unknown>;
type Field = ReturnType<FieldList>[number];
type EnumType = ReturnType<typeof protobuf.makeEnumType>;

interface FieldDescriptor {
  name: string;
  number: number;
  label: number;
  type: number;
  typeName: string;
  oneofIndex?: number;
  proto3Optional: boolean;
}
interface EnumDescriptor {
  name: string;
  value: { name: string; number: number }[];
}
interface MessageDescriptor {
  name: string;
  field: FieldDescriptor[];
  nestedType: MessageDescriptor[];
  enumType: EnumDescriptor[];
  options?: { mapEntry: boolean };
  oneofDecl: { name: string }[];
}
interface MethodDescriptor {
  name: string;
  inputType: string;
  outputType: string;
  clientStreaming: boolean;
  serverStreaming: boolean;
}
export interface FileDescriptor {
  name: string;
  package: string;
  dependency: string[];
  messageType: MessageDescriptor[];
  enumType: EnumDescriptor[];
  service: { name: string; method: MethodDescriptor[] }[];
}

const [INT32, BOOL, STRING, MESSAGE, ENUM, REPEATED] = [5, 8, 9, 11, 14, 3] as const;

function describe(name: string, fields: () => Field[]): MessageType {
  return protobuf.makeMessageType(`google.protobuf.${name}`, fields as FieldList);
}
function scalar(no: number, name: string, T: typeof INT32 | typeof BOOL | typeof STRING, more = {}): Field {
  return { no, name, kind: 'scalar', T, ...more } as Field;
}
function list(no: number, name: string, T: MessageType): Field {
  return { no, name, kind: 'message', T, repeated: true } as Field;
}

const FieldProto = describe('FieldDescriptorProto', () => [
  scalar(1, 'name', STRING),
  scalar(3, 'number', INT32),
  scalar(4, 'label', INT32),
  scalar(5, 'type', INT32),
  scalar(6, 'type_name', STRING),
  scalar(9, 'oneof_index', INT32, { opt: true }),
  scalar(17, 'proto3_optional', BOOL),
]);
const EnumValueProto = describe('EnumValueDescriptorProto', () => [scalar(1, 'name', STRING), scalar(2, 'number', INT32)]);
const EnumProto = describe('EnumDescriptorProto', () => [scalar(1, 'name', STRING), list(2, 'value', EnumValueProto)]);
const OneofProto = describe('OneofDescriptorProto', () => [scalar(1, 'name', STRING)]);
const OptionsProto = describe('MessageOptions', () => [scalar(7, 'map_entry', BOOL)]);
const MessageProto: MessageType = describe('DescriptorProto', () => [
  scalar(1, 'name', STRING),
  list(2, 'field', FieldProto),
  list(3, 'nested_type', MessageProto),
  list(4, 'enum_type', EnumProto),
  { no: 7, name: 'options', kind: 'message', T: OptionsProto, opt: true } as Field,
  list(8, 'oneof_decl', OneofProto),
]);
const MethodProto = describe('MethodDescriptorProto', () => [
  scalar(1, 'name', STRING),
  scalar(2, 'input_type', STRING),
  scalar(3, 'output_type', STRING),
  scalar(5, 'client_streaming', BOOL),
  scalar(6, 'server_streaming', BOOL),
]);
const ServiceProto = describe('ServiceDescriptorProto', () => [scalar(1, 'name', STRING), list(2, 'method', MethodProto)]);
const FileProto = describe('FileDescriptorProto', () => [
  scalar(1, 'name', STRING),
  scalar(2, 'package', STRING),
  scalar(3, 'dependency', STRING, { repeated: true }),
  list(4, 'message_type', MessageProto),
  list(5, 'enum_type', EnumProto),
  list(6, 'service', ServiceProto),
]);

/** Messages with a JSON form of their own. */
const WELL_KNOWN: readonly (readonly [string, MessageType])[] = [
  ['google.protobuf.Duration', Duration as unknown as MessageType],
  ['google.protobuf.Struct', Struct as unknown as MessageType],
  ['google.protobuf.Timestamp', Timestamp as unknown as MessageType],
];

export function readFile(data: Uint8Array): FileDescriptor {
  return FileProto.fromBinary(data) as unknown as FileDescriptor;
}

/** The service with this full name. The files must contain all messages that it uses. */
export function buildService(files: readonly FileDescriptor[], name: string): Service {
  const types = new TypeTable(files);
  for (const file of files) {
    const found = file.service.find((each) => qualify(file.package, each.name) === name);
    if (found === undefined) continue;
    const methods = found.method.map((each) => [localName(each.name), types.buildMethod(each)] as const);
    return { typeName: name, methods: Object.fromEntries(methods) };
  }
  throw new Error(`the machine does not describe ${name}`);
}

class TypeTable {
  readonly #messages = new Map<string, MessageDescriptor>();
  readonly #enums = new Map<string, EnumType>();
  readonly #types = new Map<string, MessageType>(WELL_KNOWN);

  constructor(files: readonly FileDescriptor[]) {
    for (const file of files) this.#add(file.package, file.messageType, file.enumType);
  }

  buildMethod(method: MethodDescriptor): Method {
    const kind = (method.clientStreaming ? 2 : 0) + (method.serverStreaming ? 1 : 0);
    return { name: method.name, I: this.#find(method.inputType), O: this.#find(method.outputType), kind };
  }

  #add(scope: string, messages: readonly MessageDescriptor[], enums: readonly EnumDescriptor[]): void {
    for (const each of enums) {
      const name = qualify(scope, each.name);
      const values = each.value.map(({ name, number }) => ({ name, no: number }));
      this.#enums.set(name, protobuf.makeEnumType(name, values));
    }
    for (const each of messages) {
      const name = qualify(scope, each.name);
      this.#messages.set(name, each);
      this.#add(name, each.nestedType, each.enumType);
    }
  }

  #find(reference: string): MessageType {
    const name = reference.replace(/^\./, '');
    let type = this.#types.get(name);
    if (type === undefined) {
      const message = this.#describe(name);
      // Fields are resolved when they are first used, because messages may contain themselves.
      const fields = () => message.field.map((field) => this.#buildField(field, message));
      type = protobuf.makeMessageType(name, fields as FieldList);
      this.#types.set(name, type);
    }
    return type;
  }

  #describe(name: string): MessageDescriptor {
    const found = this.#messages.get(name);
    if (found === undefined) throw new Error(`the machine does not describe the message ${name}`);
    return found;
  }

  #buildField(field: FieldDescriptor, message: MessageDescriptor): Field {
    const common = { no: field.number, name: field.name };
    const entry = field.type === MESSAGE ? this.#findMapEntry(field) : undefined;
    if (entry !== undefined) {
      const [key, value] = entry.field as [FieldDescriptor, FieldDescriptor];
      return { ...common, kind: 'map', K: key.type, V: this.#valueType(value) } as Field;
    }
    const oneof = field.proto3Optional ? undefined : message.oneofDecl[field.oneofIndex ?? -1]?.name;
    const presence = field.label === REPEATED ? { repeated: true } : oneof ? { oneof } : { opt: field.proto3Optional };
    return { ...common, ...this.#valueType(field), ...presence } as Field;
  }

  #valueType(field: FieldDescriptor): object {
    if (field.type === MESSAGE) return { kind: 'message', T: this.#find(field.typeName) };
    if (field.type === ENUM) return { kind: 'enum', T: this.#enums.get(field.typeName.replace(/^\./, '')) };
    return { kind: 'scalar', T: field.type };
  }

  #findMapEntry(field: FieldDescriptor): MessageDescriptor | undefined {
    const found = this.#messages.get(field.typeName.replace(/^\./, ''));
    return field.label === REPEATED && found?.options?.mapEntry ? found : undefined;
  }
}

function qualify(scope: string, name: string): string {
  return scope ? `${scope}.${name}` : name;
}

function localName(method: string): string {
  return method.charAt(0).toLowerCase() + method.slice(1);
}

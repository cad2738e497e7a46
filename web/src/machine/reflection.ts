/** Asks a machine, by gRPC reflection, which methods and messages a service has. */

import { Struct, type RobotClient } from '@viamrobotics/sdk';
import { buildService, readFile, type FileDescriptor } from './descriptors';
import type { Service } from './service_type';

const MAX_FILES = 200;
const TIMEOUT = 5000;
const SERVER_STREAMING = 1;
const [STRING, BYTES, INT32] = [9, 12, 5] as const;

const protobuf = Struct.runtime;
const Request = protobuf.makeMessageType('grpc.reflection.v1.ServerReflectionRequest', () => [
  { no: 3, name: 'file_by_filename', kind: 'scalar', T: STRING, oneof: 'message_request' },
  { no: 4, name: 'file_containing_symbol', kind: 'scalar', T: STRING, oneof: 'message_request' },
]);
const Files = protobuf.makeMessageType('grpc.reflection.v1.FileDescriptorResponse', () => [
  { no: 1, name: 'file_descriptor_proto', kind: 'scalar', T: BYTES, repeated: true },
]);
const Failure = protobuf.makeMessageType('grpc.reflection.v1.ErrorResponse', () => [
  { no: 1, name: 'error_code', kind: 'scalar', T: INT32 },
  { no: 2, name: 'error_message', kind: 'scalar', T: STRING },
]);
const Reply = protobuf.makeMessageType('grpc.reflection.v1.ServerReflectionResponse', () => [
  { no: 4, name: 'file_descriptor_response', kind: 'message', T: Files, opt: true },
  { no: 7, name: 'error_response', kind: 'message', T: Failure, opt: true },
]);

// The method takes a stream, which browsers cannot send over gRPC-web. A stream of one request is the same
// on the wire as a single request.
const REFLECTION: Service = {
  typeName: 'grpc.reflection.v1.ServerReflection',
  methods: {
    serverReflectionInfo: { name: 'ServerReflectionInfo', I: Request, O: Reply, kind: SERVER_STREAMING },
  },
};

type Question = { case: 'fileByFilename' | 'fileContainingSymbol'; value: string };
interface Answer {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Uint8Array[] };
  readonly errorResponse?: { readonly errorMessage: string };
}
type Ask = (request: object, options: object) => AsyncIterable<Answer>;

/** The service with this full name, for example `viam.service.navigation.v1.NavigationService`. */
export async function reflectService(robot: RobotClient, name: string): Promise<Service> {
  const client = robot.createServiceClient(REFLECTION) as unknown as { serverReflectionInfo: Ask };
  const files = new Map<string, FileDescriptor>();
  let questions: Question[] = [{ case: 'fileContainingSymbol', value: name }];
  while (questions.length > 0) {
    const found = (await Promise.all(questions.map((each) => query(client.serverReflectionInfo, each)))).flat();
    for (const file of found) files.set(file.name, file);
    if (files.size > MAX_FILES) throw new Error(`${name} is described by more than ${MAX_FILES} files`);
    const missing = new Set(found.flatMap((each) => each.dependency).filter((each) => !files.has(each)));
    questions = [...missing].map((value) => ({ case: 'fileByFilename', value }));
  }
  return buildService([...files.values()], name);
}

async function query(ask: Ask, messageRequest: Question): Promise<FileDescriptor[]> {
  for await (const reply of ask({ messageRequest }, { timeoutMs: TIMEOUT })) {
    if (reply.errorResponse) throw new Error(reply.errorResponse.errorMessage);
    return (reply.fileDescriptorResponse?.fileDescriptorProto ?? []).map(readFile);
  }
  throw new Error(`the machine does not describe ${messageRequest.value}`);
}

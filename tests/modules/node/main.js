// A module written against the protocol: a camera with large pictures, and no SDK.
'use strict';

const fs = require('node:fs');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const ONE_MEGABYTE = 1 << 20;
const CAMERA = 'viam.component.camera.v1.CameraService';
const MODULE = 'viam.module.v1.ModuleService';
const REFLECTION = ['v1', 'v1alpha'].map((version) => `grpc.reflection.${version}.ServerReflection`);

// Gray, 8 by 8.
const PICTURE = Buffer.from(
  [
    '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4',
    'UG1RV19iZ2hnPk1xeXBkeFxlZ2P/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAA',
    'AAAAAAAAAAD/2gAIAQEAAD8AP//Z',
  ].join(''),
  'base64',
);

const descriptors = fs.readFileSync(process.env.DESCRIPTORS);
const options = { keepCase: true, longs: Number, oneofs: true, defaults: true };
const described = protoLoader.loadFileDescriptorSetFromBuffer(descriptors, options);
const cameras = new Map();
let parent = null;

function main() {
  const tcp = process.argv.includes('--tcp-mode');
  const address = tcp ? process.argv[2] : `unix:${process.argv[2]}`;
  const server = new grpc.Server({ 'grpc.max_receive_message_length': -1 });
  server.addService(described[MODULE], { Ready, ValidateConfig, AddResource, ReconfigureResource, RemoveResource });
  server.addService(described[CAMERA], { GetImages, GetProperties, DoCommand });
  for (const name of REFLECTION) server.addService(described[name], { ServerReflectionInfo });
  server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    console.log(`serves at ${address}`);
  });
  process.on('SIGTERM', () => leave(server));
}

function leave(server) {
  if (parent) parent.close();
  server.tryShutdown(() => process.exit(0));
  setTimeout(() => process.exit(0), 1000).unref();
}

function Ready(call, reply) {
  const address = call.request.parent_address;
  const Robot = grpc.loadPackageDefinition(described).viam.robot.v1.RobotService;
  const target = address.startsWith('/') ? `unix:${address}` : address;
  if (!parent) parent = new Robot(target, grpc.credentials.createInsecure());
  parent.ResourceNames({}, { deadline: Date.now() + 5000 }, (error, names) => {
    if (error) return reply({ code: grpc.status.UNAVAILABLE, details: `the machine does not answer: ${error.message}` });
    console.log(`the machine has ${names.resources.length} resources`);
    const subtype = { subtype: { namespace: 'rdk', type: 'component', subtype: 'camera' }, proto_service: CAMERA };
    reply(null, { ready: true, handlermap: { handlers: [{ subtype, models: ['acme:node:camera'] }] } });
  });
}

function ValidateConfig(call, reply) {
  const { bytes } = attributesOf(call.request.config);
  if (bytes !== undefined && !(bytes >= PICTURE.length)) {
    return reply({ code: grpc.status.INVALID_ARGUMENT, details: `"bytes" is ${bytes}; a picture has at least ${PICTURE.length}` });
  }
  reply(null, {});
}

function AddResource(call, reply) {
  const { name, api } = call.request.config;
  const { bytes = ONE_MEGABYTE } = attributesOf(call.request.config);
  cameras.set(`${api}/${name}`, filled(PICTURE, bytes));
  reply(null, {});
}

function ReconfigureResource(call, reply) {
  AddResource(call, reply);
}

function RemoveResource(call, reply) {
  if (!cameras.delete(call.request.name)) return reply(missing(call.request.name));
  reply(null, {});
}

function GetImages(call, reply) {
  const picture = cameras.get(`rdk:component:camera/${call.request.name}`);
  if (!picture) return reply(missing(call.request.name));
  const now = Date.now();
  const captured_at = { seconds: Math.floor(now / 1000), nanos: (now % 1000) * 1e6 };
  reply(null, {
    images: [{ source_name: 'color', mime_type: 'image/jpeg', format: 'FORMAT_JPEG', image: picture }],
    response_metadata: { captured_at },
  });
}

function GetProperties(call, reply) {
  reply(null, { supports_pcd: false, mime_types: ['image/jpeg'] });
}

function DoCommand(call, reply) {
  reply(null, { result: call.request.command });
}

// One file for each question: the one that has the symbol, or the name.
function ServerReflectionInfo(call) {
  call.on('data', (request) => call.write({ original_request: request, ...answer(request) }));
  call.on('end', () => call.end());
}

function answer(request) {
  const { message_request, file_by_filename, file_containing_symbol } = request;
  if (message_request === 'list_services') {
    return { list_services_response: { service: [MODULE, CAMERA, ...REFLECTION].map((name) => ({ name })) } };
  }
  const file = files().find(({ name, symbols }) => name === file_by_filename || symbols.has(file_containing_symbol));
  if (file) return { file_descriptor_response: { file_descriptor_proto: [file.bytes] } };
  return { error_response: { error_code: grpc.status.NOT_FOUND, error_message: 'not found' } };
}

let known = null;

function files() {
  known = known || messagesIn(descriptors, 1).map((bytes) => {
    const scope = text(messagesIn(bytes, 2)[0]);
    const own = [4, 5, 6].flatMap((field) => messagesIn(bytes, field)).map((each) => text(messagesIn(each, 1)[0]));
    return { name: text(messagesIn(bytes, 1)[0]), bytes, symbols: new Set(own.map((name) => `${scope}.${name}`)) };
  });
  return known;
}

// The values of one field of a message, where that field has a length.
function messagesIn(message, wanted) {
  const found = [];
  let at = 0;
  const integer = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      value += (message[at] & 127) * shift;
      if (message[at++] < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = integer();
    if ((tag & 7) === 2) {
      const size = integer();
      if (tag >> 3 === wanted) found.push(message.subarray(at, at + size));
      at += size;
    } else if ((tag & 7) === 0) {
      integer();
    } else {
      at += (tag & 7) === 1 ? 8 : 4;
    }
  }
  return found;
}

function text(bytes) {
  return bytes ? bytes.toString() : '';
}

// The library takes a map for what it is on the wire: a list of entries.
function attributesOf(config) {
  const entries = (config.attributes && config.attributes.fields) || [];
  return Object.fromEntries(entries.map(({ key, value }) => [key, value.number_value]));
}

// With comments, right behind its first two bytes.
function filled(picture, size) {
  const parts = [picture.subarray(0, 2)];
  for (let missing = size - picture.length; missing > 0; ) {
    const length = Math.max(Math.min(missing - 4, 65533), 0);
    const comment = Buffer.alloc(length + 4);
    comment.writeUInt16BE(0xfffe, 0);
    comment.writeUInt16BE(length + 2, 2);
    parts.push(comment);
    missing -= comment.length;
  }
  return Buffer.concat([...parts, picture.subarray(2)]);
}

function missing(name) {
  return { code: grpc.status.NOT_FOUND, details: `there is no camera "${name}" in this module` };
}

main();

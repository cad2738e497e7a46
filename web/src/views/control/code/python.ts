import { KEY_ID_VARIABLE, KEY_VARIABLE, type Connection } from './connection';
import type { Lines, Subject } from './subject';

/** What the Python SDK has for an API. In the lines, `it` is the resource. */
interface Binding extends Lines {
  readonly module: string;
  readonly className: string;
}

function bind(module: string, className: string, reads: string | readonly string[], acts: readonly string[] = []): Binding {
  return { module, className, reads: typeof reads === 'string' ? [`print(await it.${reads})`] : reads, acts };
}

const VISION = 'rdk:service:vision';

const BINDINGS: Readonly<Record<string, Binding>> = {
  'rdk:component:arm': bind(
    'components.arm',
    'Arm',
    ['positions = await it.get_joint_positions()', 'print(positions)'],
    ['positions.values[0] += 5', 'await it.move_to_joint_positions(positions)'],
  ),
  'rdk:component:audio_in': bind('components.audio_in', 'AudioIn', 'get_properties()'),
  'rdk:component:audio_out': bind('components.audio_out', 'AudioOut', 'get_properties()'),
  'rdk:component:base': bind('components.base', 'Base', 'is_moving()', ['await it.move_straight(distance=100, velocity=50)']),
  'rdk:component:board': bind('components.board', 'Board', 'get_status()', [
    'pin = await it.gpio_pin_by_name("16")',
    'print(await pin.get())',
    'await pin.set(True)',
  ]),
  'rdk:component:button': bind('components.button', 'Button', 'get_status()', ['await it.push()']),
  'rdk:component:camera': bind('components.camera', 'Camera', [
    'images, metadata = await it.get_images()',
    'for image in images:',
    '    print(image.name, image.mime_type, len(image.data), "bytes")',
  ]),
  'rdk:component:encoder': bind('components.encoder', 'Encoder', 'get_position()'),
  'rdk:component:gantry': bind('components.gantry', 'Gantry', 'get_position()', ['await it.home()']),
  'rdk:component:generic': bind('components.generic', 'Generic', 'get_status()', ['print(await it.do_command({"command": "value"}))']),
  'rdk:component:gripper': bind('components.gripper', 'Gripper', 'is_moving()', ['await it.open()']),
  'rdk:component:input_controller': bind('components.input', 'Controller', 'get_events()'),
  'rdk:component:motor': bind('components.motor', 'Motor', 'is_moving()', ['await it.go_for(rpm=60, revolutions=1)']),
  'rdk:component:movement_sensor': bind('components.movement_sensor', 'MovementSensor', 'get_readings()'),
  'rdk:component:pose_tracker': bind('components.pose_tracker', 'PoseTracker', 'get_poses([])'),
  'rdk:component:power_sensor': bind('components.power_sensor', 'PowerSensor', 'get_readings()'),
  'rdk:component:sensor': bind('components.sensor', 'Sensor', 'get_readings()'),
  'rdk:component:servo': bind('components.servo', 'Servo', 'get_position()', ['await it.move(90)']),
  'rdk:component:switch': bind('components.switch', 'Switch', 'get_position()', ['await it.set_position(1)']),
  'rdk:service:discovery': bind('services.discovery', 'DiscoveryClient', 'discover_resources()'),
  'rdk:service:generic': bind('services.generic', 'GenericClient', 'get_status()', ['print(await it.do_command({"command": "value"}))']),
  'rdk:service:mlmodel': bind('services.mlmodel', 'MLModelClient', 'metadata()'),
  'rdk:service:motion': bind('services.motion', 'MotionClient', 'list_plan_statuses()'),
  'rdk:service:navigation': bind('services.navigation', 'NavigationClient', 'get_properties()'),
  'rdk:service:slam': bind('services.slam', 'SLAMClient', 'get_position()'),
  [VISION]: bind('services.vision', 'VisionClient', 'get_properties()'),
  'rdk:service:world_state_store': bind('services.worldstatestore', 'WorldStateStoreClient', 'list_uuids()'),
};

const WITH_CAMERA = bind('services.vision', 'VisionClient', [
  'properties = await it.get_properties()',
  'if properties.detections_supported:',
  '    print(await it.get_detections_from_camera(CAMERA))',
  'if properties.classifications_supported:',
  '    print(await it.get_classifications_from_camera(CAMERA, 3))',
]);

export function writePython({ resource, camera, effect }: Subject, connection: Connection): string {
  const binding = resource.api === VISION && camera ? WITH_CAMERA : BINDINGS[resource.api];
  const name = resource.api === 'rdk:component:input_controller' ? 'controller' : resource.subtype;
  const fill = (line: string) => line.replaceAll(/\bit\b/g, name).replaceAll('CAMERA', JSON.stringify(camera));
  const body =
    binding === undefined
      ? printState(resource.fullName)
      : [
          `${name} = ${binding.className}.from_robot(machine, ${JSON.stringify(resource.shortName)})`,
          ...binding.reads.map(fill),
          ...(binding.acts.length > 0 ? [`# ${effect}`, ...binding.acts.map((line) => `# ${fill(line)}`)] : []),
        ];
  return [
    'import asyncio',
    ...(connection.needsLogin ? ['import os'] : []),
    '',
    ...(binding ? [`from viam.${binding.module} import ${binding.className}`] : []),
    'from viam.robot.client import RobotClient',
    ...(connection.needsLogin ? [] : ['from viam.rpc.dial import DialOptions']),
    '',
    '',
    'async def main() -> None:',
    ...makeOptions(connection).map(indent),
    `    async with await RobotClient.at_address(${JSON.stringify(connection.address)}, options) as machine:`,
    ...body.map((line) => indent(indent(line))),
    '',
    '',
    'asyncio.run(main())',
    '',
  ].join('\n');
}

/** The SDK has no client for an API of a module, unless the module comes with one. */
function printState(fullName: string): string[] {
  return [
    'for each in (await machine.get_machine_status()).resources:',
    '    name = each.name',
    `    if f"{name.namespace}:{name.type}:{name.subtype}/{name.name}" == ${JSON.stringify(fullName)}:`,
    '        print(each)',
    '# Its methods need the Python client that comes with its module.',
  ];
}

function makeOptions({ isEncrypted, hostname, needsLogin }: Connection): string[] {
  if (!needsLogin) {
    const arguments_ = [...(isEncrypted ? [] : ['insecure=True']), 'disable_webrtc=True'].join(', ');
    return [`dial = DialOptions(${arguments_})`, 'options = RobotClient.Options(dial_options=dial)'];
  }
  const begin = [
    `key_id, key = os.environ["${KEY_ID_VARIABLE}"], os.environ["${KEY_VARIABLE}"]`,
    'options = RobotClient.Options.with_api_key(key, key_id)',
  ];
  if (isEncrypted) return [...begin, 'options.dial_options.disable_webrtc = True'];
  // With a key but without TLS, the SDK fails to connect directly if WebRTC is disabled.
  const peer = hostname === 'localhost' ? [] : ['options.dial_options.force_p2p = True'];
  return [...begin, 'options.dial_options.insecure = True', ...peer];
}

function indent(line: string): string {
  return `    ${line}`;
}

import { KEY_ID_VARIABLE, KEY_VARIABLE, type Connection } from './connection';
import type { Lines, Subject } from './subject';

/** What the TypeScript SDK has for an API. In the lines, `it` is the resource. */
interface Binding extends Lines {
  readonly className: string;
  /** What else is imported from the SDK. */
  readonly imports: readonly string[];
}

function bind(className: string, read: string | readonly string[], acts: readonly string[] = [], imports: readonly string[] = []): Binding {
  return { className, reads: typeof read === 'string' ? [`console.log(await it.${read});`] : read, acts, imports };
}

const COMMAND = 'console.log(await it.doCommand(Struct.fromJson({ command: "value" })));';

const VISION = 'rdk:service:vision';

const BINDINGS: Readonly<Record<string, Binding>> = {
  'rdk:component:arm': bind(
    'ArmClient',
    ['const { values } = await it.getJointPositions();', 'console.log(values);'],
    ['values[0] += 5;', 'await it.moveToJointPositions(values);'],
  ),
  'rdk:component:audio_in': bind('AudioInClient', 'getProperties()'),
  'rdk:component:audio_out': bind('AudioOutClient', 'getProperties()'),
  'rdk:component:base': bind('BaseClient', 'isMoving()', ['await it.moveStraight(100, 50);']),
  'rdk:component:board': bind('BoardClient', [], ['console.log(await it.getGPIO("16"));', 'await it.setGPIO("16", true);']),
  'rdk:component:button': bind('ButtonClient', [], ['await it.push();']),
  'rdk:component:camera': bind('CameraClient', [
    'const { images } = await it.getImages();',
    'for (const { sourceName, mimeType, image } of images) {',
    '  console.log(sourceName, mimeType, image.length, "bytes");',
    '}',
  ]),
  'rdk:component:encoder': bind('EncoderClient', 'getPosition()'),
  'rdk:component:gantry': bind('GantryClient', 'getPosition()', ['await it.home();']),
  'rdk:component:generic': bind('GenericComponentClient', [], [COMMAND], ['Struct']),
  'rdk:component:gripper': bind('GripperClient', 'isMoving()', ['await it.open();']),
  'rdk:component:input_controller': bind('InputControllerClient', 'getEvents()'),
  'rdk:component:motor': bind('MotorClient', 'isMoving()', ['await it.goFor(60, 1);']),
  'rdk:component:movement_sensor': bind('MovementSensorClient', 'getReadings()'),
  'rdk:component:power_sensor': bind('PowerSensorClient', 'getReadings()'),
  'rdk:component:sensor': bind('SensorClient', 'getReadings()'),
  'rdk:component:servo': bind('ServoClient', 'getPosition()', ['await it.move(90);']),
  'rdk:component:switch': bind('SwitchClient', 'getPosition()', ['await it.setPosition(1);']),
  'rdk:service:discovery': bind('DiscoveryClient', 'discoverResources()'),
  'rdk:service:generic': bind('GenericServiceClient', [], [COMMAND], ['Struct']),
  'rdk:service:mlmodel': bind('MLModelClient', 'metadata()'),
  'rdk:service:motion': bind('MotionClient', 'listPlanStatuses()'),
  'rdk:service:navigation': bind('NavigationClient', 'getProperties()'),
  'rdk:service:slam': bind('SlamClient', 'getPosition()'),
  [VISION]: bind('VisionClient', 'getProperties()'),
  'rdk:service:world_state_store': bind('WorldStateStoreClient', 'listUUIDs()'),
};

const WITH_CAMERA = bind('VisionClient', [
  'const properties = await it.getProperties();',
  'if (properties.detectionsSupported) {',
  '  console.log(await it.getDetectionsFromCamera(CAMERA));',
  '}',
  'if (properties.classificationsSupported) {',
  '  console.log(await it.getClassificationsFromCamera(CAMERA, 3));',
  '}',
]);

/** The program is JavaScript as well, so that Node runs it as it is. */
export function writeTypeScript({ resource, camera, effect }: Subject, connection: Connection): string {
  const binding = resource.api === VISION && camera ? WITH_CAMERA : BINDINGS[resource.api];
  const name = toVariable(resource.subtype);
  const fill = (line: string) => line.replaceAll(/\bit\b/g, name).replaceAll('CAMERA', JSON.stringify(camera));
  const reads = binding?.reads.length ? binding.reads.map(fill) : printState(resource.fullName);
  const acts = binding?.acts.length ? [`// ${effect}`, ...binding.acts.map((line) => `// ${fill(line)}`)] : [];
  const imports = binding ? [binding.className, ...binding.imports, 'RobotClient'] : ['RobotClient'];
  return [
    `import { ${imports.toSorted().join(', ')} } from "@viamrobotics/sdk";`,
    '',
    `const machine = new RobotClient(${JSON.stringify(`${connection.isEncrypted ? 'https' : 'http'}://${connection.address}`)});`,
    ...connect(connection),
    '',
    ...(binding ? [`const ${name} = new ${binding.className}(machine, ${JSON.stringify(resource.shortName)});`] : []),
    ...reads,
    ...acts,
    '',
    'await machine.disconnect();',
    // It asks every ten seconds whether the machine is there, also after that.
    'process.exit(); // the SDK would keep Node running',
    '',
  ].join('\n');
}

function connect({ needsLogin }: Connection): string[] {
  if (!needsLogin) return ['await machine.connect();'];
  return [
    'await machine.connect({',
    '  creds: {',
    '    type: "api-key",',
    `    authEntity: process.env.${KEY_ID_VARIABLE} ?? "",`,
    `    payload: process.env.${KEY_VARIABLE} ?? "",`,
    '  },',
    '});',
  ];
}

/** For what the SDK cannot read, or has no client for. */
function printState(fullName: string): string[] {
  return [
    'const { resources } = await machine.getMachineStatus();',
    'for (const { name, state, error } of resources) {',
    '  const full = `${name?.namespace}:${name?.type}:${name?.subtype}/${name?.name}`;',
    `  if (full === ${JSON.stringify(fullName)}) console.log(state, error);`,
    '}',
  ];
}

/** `power_sensor` becomes `powerSensor`. */
function toVariable(subtype: string): string {
  if (subtype === 'switch') return 'toggle'; // a word of the language
  return subtype.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

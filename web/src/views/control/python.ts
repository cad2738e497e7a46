/** The class of the Python SDK, its module, and a method that shows something. */
const CLASSES: Readonly<Record<string, readonly [string, string]>> = {
  'rdk:component:arm': ['Arm', 'get_joint_positions()'],
  'rdk:component:audio_in': ['AudioIn', 'get_properties()'],
  'rdk:component:audio_out': ['AudioOut', 'get_properties()'],
  'rdk:component:base': ['Base', 'set_power(Vector3(y=0.5), Vector3())'],
  'rdk:component:board': ['Board', 'analog_by_name("a")'],
  'rdk:component:button': ['Button', 'push()'],
  'rdk:component:camera': ['Camera', 'get_images()'],
  'rdk:component:encoder': ['Encoder', 'get_position()'],
  'rdk:component:gantry': ['Gantry', 'get_position()'],
  'rdk:component:generic': ['Generic', 'do_command({"ping": 1})'],
  'rdk:component:gripper': ['Gripper', 'open()'],
  'rdk:component:input_controller': ['Controller', 'get_events()'],
  'rdk:component:motor': ['Motor', 'go_for(rpm=60, revolutions=1)'],
  'rdk:component:movement_sensor': ['MovementSensor', 'get_readings()'],
  'rdk:component:pose_tracker': ['PoseTracker', 'get_poses([])'],
  'rdk:component:power_sensor': ['PowerSensor', 'get_readings()'],
  'rdk:component:sensor': ['Sensor', 'get_readings()'],
  'rdk:component:servo': ['Servo', 'move(90)'],
  'rdk:component:switch': ['Switch', 'get_position()'],
  'rdk:service:discovery': ['DiscoveryClient', 'discover_resources()'],
  'rdk:service:generic': ['GenericClient', 'do_command({"ping": 1})'],
  'rdk:service:mlmodel': ['MLModelClient', 'metadata()'],
  'rdk:service:motion': ['MotionClient', 'list_plan_statuses()'],
  'rdk:service:navigation': ['NavigationClient', 'get_location()'],
  'rdk:service:slam': ['SLAMClient', 'get_position()'],
  'rdk:service:vision': ['VisionClient', 'get_detections_from_camera("camera")'],
};

/** A program that does with the resource what its card does. */
export function pythonFor(api: string, name: string, host: string): string {
  const [, kind = 'component', subtype = ''] = api.split(':');
  const [className, method] = CLASSES[api] ?? ['Generic', 'do_command({})'];
  const module = CLASSES[api] ? subtype.replace('input_controller', 'input') : 'generic';
  const literal = JSON.stringify(name);
  return [
    'import asyncio',
    'from viam.robot.client import RobotClient',
    `from viam.${kind}s.${module} import ${className}`,
    ...(className === 'Base' ? ['from viam.proto.common import Vector3'] : []),
    '',
    'async def main():',
    `    async with await RobotClient.at_address(${JSON.stringify(host)}) as machine:`,
    `        ${subtype} = ${className}.from_robot(machine, ${literal})`,
    `        print(await ${subtype}.${method})`,
    '',
    'asyncio.run(main())',
  ].join('\n');
}

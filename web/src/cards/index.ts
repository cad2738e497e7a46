import type { Component } from 'svelte';
import type { CardProps } from './card_props';

type Loader = () => Promise<{ default: Component<CardProps> }>;

/** The controls of each API, loaded when a card of it is first shown. */
const CARDS: Readonly<Record<string, Loader>> = {
  'rdk:component:arm': () => import('./Arm.svelte'),
  'rdk:component:audio_in': () => import('./AudioIn.svelte'),
  'rdk:component:audio_out': () => import('./AudioOut.svelte'),
  'rdk:component:base': () => import('./Base.svelte'),
  'rdk:component:board': () => import('./Board.svelte'),
  'rdk:component:button': () => import('./Button.svelte'),
  'rdk:component:camera': () => import('./Camera.svelte'),
  'rdk:component:encoder': () => import('./Encoder.svelte'),
  'rdk:component:gantry': () => import('./Gantry.svelte'),
  'rdk:component:gripper': () => import('./Gripper.svelte'),
  'rdk:component:input_controller': () => import('./InputController.svelte'),
  'rdk:component:motor': () => import('./Motor.svelte'),
  'rdk:component:movement_sensor': () => import('./MovementSensor.svelte'),
  'rdk:component:pose_tracker': () => import('./PoseTracker.svelte'),
  'rdk:component:power_sensor': () => import('./PowerSensor.svelte'),
  'rdk:component:sensor': () => import('./Sensor.svelte'),
  'rdk:component:servo': () => import('./Servo.svelte'),
  'rdk:component:switch': () => import('./Switch.svelte'),
  'rdk:service:discovery': () => import('./Discovery.svelte'),
  'rdk:service:mlmodel': () => import('./MlModel.svelte'),
  'rdk:service:motion': () => import('./Motion.svelte'),
  'rdk:service:navigation': () => import('./Navigation.svelte'),
  'rdk:service:slam': () => import('./Slam.svelte'),
  'rdk:service:vision': () => import('./Vision.svelte'),
  'rdk:service:world_state_store': () => import('./WorldStateStore.svelte'),
};

const OTHER: Loader = () => import('./Generic.svelte');

export function loadCard(api: string): ReturnType<Loader> {
  return (CARDS[api] ?? OTHER)();
}

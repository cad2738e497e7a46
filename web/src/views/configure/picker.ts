/** What can be added to a configuration, as people look for it. */

import type { Device } from '../../machine/configuration';
import type { KnownModel } from './resources';

/** Something that can be added: a model, a model of a module, or a device that was found. */
export interface Offer {
  readonly model: KnownModel;
  /** The module that provides the model. */
  readonly module?: string;
  readonly device?: Device;
}

export interface OfferGroup {
  readonly api: string;
  readonly title: string;
  readonly offers: readonly Offer[];
}

interface ApiWords {
  readonly title: string;
  /** Other words that people use for it. */
  readonly words?: string;
}

const APIS: Readonly<Record<string, ApiWords>> = {
  'rdk:component:arm': { title: 'Arm', words: 'robot joints manipulator' },
  'rdk:component:audio_in': { title: 'Microphone', words: 'audio_in sound record' },
  'rdk:component:audio_out': { title: 'Speaker', words: 'audio_out sound play' },
  'rdk:component:base': { title: 'Base', words: 'wheels drive rover vehicle robot' },
  'rdk:component:board': { title: 'Board', words: 'gpio pins raspberry pi analog interrupt' },
  'rdk:component:button': { title: 'Button', words: 'push' },
  'rdk:component:camera': { title: 'Camera', words: 'video image picture webcam rtsp ip' },
  'rdk:component:encoder': { title: 'Encoder', words: 'rotation position ticks' },
  'rdk:component:gantry': { title: 'Gantry', words: 'linear axis rail' },
  'rdk:component:generic': { title: 'Generic component', words: 'other custom' },
  'rdk:component:gripper': { title: 'Gripper', words: 'hand grab' },
  'rdk:component:input_controller': { title: 'Gamepad', words: 'input_controller joystick' },
  'rdk:component:motor': { title: 'Motor', words: 'wheel dc' },
  'rdk:component:movement_sensor': { title: 'Movement sensor', words: 'gps imu compass odometry position speed' },
  'rdk:component:pose_tracker': { title: 'Pose tracker', words: 'bodies' },
  'rdk:component:power_sensor': { title: 'Power sensor', words: 'voltage current battery' },
  'rdk:component:sensor': { title: 'Sensor', words: 'temperature humidity serial computer measure' },
  'rdk:component:servo': { title: 'Servo', words: 'angle' },
  'rdk:component:switch': { title: 'Switch', words: 'relay' },
  'rdk:service:discovery': { title: 'Discovery', words: 'find devices' },
  'rdk:service:generic': { title: 'Generic service', words: 'other custom' },
  'rdk:service:mlmodel': { title: 'ML model', words: 'ai neural network onnx tensorflow pytorch' },
  'rdk:service:motion': { title: 'Motion', words: 'move plan' },
  'rdk:service:navigation': { title: 'Navigation', words: 'waypoints map drive' },
  'rdk:service:shell': { title: 'Shell', words: 'terminal files' },
  'rdk:service:slam': { title: 'SLAM', words: 'map localization' },
  'rdk:service:vision': { title: 'Vision', words: 'detection classification boxes objects ai' },
  'rdk:service:world_state_store': { title: 'World state store', words: 'objects' },
};
const FAKE = 'fake';

/** Every model as an offer: the models of the server and of modules. */
export function listOffers(
  models: readonly KnownModel[],
  modular: readonly { readonly moduleName: string; readonly model: string; readonly api: string }[],
): Offer[] {
  const ofModules = modular.map(({ moduleName, model, api }): Offer => {
    const section = api.split(':')[1] === 'service' ? 'services' : 'components';
    return { model: { section, api, model, description: `A model of the module ${moduleName}.` }, module: moduleName };
  });
  return [...models.map((model) => ({ model })), ...ofModules];
}

export function offerDevice(device: Device): Offer {
  const { api, model } = device;
  return { model: { section: 'components', api, model, description: describeDevice(device) }, device };
}

/** The offers that have every word that was typed, by their APIs. What needs no hardware is last. */
export function searchOffers(offers: readonly Offer[], typed: string): OfferGroup[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, { offers: Offer[]; score: number }>();
  for (const offer of offers) {
    const score = scoreOf(offer, words);
    if (score === 0) continue;
    const group = groups.get(offer.model.api) ?? { offers: [], score: 0 };
    groups.set(offer.model.api, { offers: [...group.offers, offer], score: Math.max(group.score, score) });
  }
  return [...groups]
    .map(([api, { offers: found, score }]) => ({ api, score, title: titleOf(api), offers: found.toSorted(compareOffers) }))
    .toSorted((a, b) => b.score - a.score || a.title.localeCompare(b.title));
}

export function titleOf(api: string): string {
  const subtype = api.split(':').at(-1) ?? '';
  return APIS[api]?.title ?? subtype.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase());
}

/** Zero if a word is missing; more if words are in the title or in the name of the model. */
function scoreOf({ model, device }: Offer, words: readonly string[]): number {
  const title = titleOf(model.api).toLowerCase();
  const name = `${model.model} ${device?.name ?? ''}`.toLowerCase();
  const rest = `${model.api} ${APIS[model.api]?.words ?? ''} ${model.description}`.toLowerCase();
  const scores = words.map((word) =>
    title.startsWith(word) ? 4 : hasWord(title, word) ? 3 : hasWord(name, word) ? 2 : hasWord(rest, word) ? 1 : 0,
  );
  return scores.includes(0) ? 0 : 1 + scores.reduce<number>((sum, each) => sum + each, 0);
}

/** Whether a word of the text begins like that. */
function hasWord(text: string, beginning: string): boolean {
  return text.split(/[^\p{L}\p{N}]+/u).some((each) => each.startsWith(beginning)) || text.includes(` ${beginning}`);
}

function compareOffers(a: Offer, b: Offer): number {
  return Number(a.model.model === FAKE) - Number(b.model.model === FAKE) || a.model.model.localeCompare(b.model.model);
}

function describeDevice({ attributes }: Device): string {
  const texts = Object.values(attributes).filter((each) => typeof each === 'string' || typeof each === 'number');
  return ['Found on this computer', ...texts].join(' · ');
}

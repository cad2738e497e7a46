/** Serial chains of links and joints in the SVA format, and their forward kinematics. */

import { parseOrientation, requireNumber } from './orientation';
import { compose, fromAxisAngle, IDENTITY, NO_ROTATION, unitVector, type Pose, type Vector } from './pose';
import { parseShape, type Shape } from './shape';

export interface Link {
  readonly id: string;
  readonly parent: string;
  /** From the end of its parent to its own end. */
  readonly pose: Pose;
  /** Relative to the end of its parent. */
  readonly shape: Shape | null;
}

export interface Joint {
  readonly id: string;
  readonly parent: string;
  readonly kind: 'revolute' | 'prismatic';
  readonly axis: Vector;
  /** Degrees of a revolute joint, millimeters of a prismatic one. */
  readonly minimum: number;
  readonly maximum: number;
}

export type Element = Link | Joint;

export interface Chain {
  readonly name: string;
  /** From the base to the end. */
  readonly elements: readonly Element[];
  readonly joints: readonly Joint[];
}

/** An element at certain joint positions. */
export interface PlacedElement {
  readonly element: Element;
  /** Where it begins and ends, relative to the base. */
  readonly start: Pose;
  readonly end: Pose;
}

const WORLD = 'world';
const MAX_ELEMENTS = 1000;

type Fields = Readonly<Record<string, unknown>>;

/** Reads what `getKinematics` and the frame system return. Throws a RangeError if it is not a chain in SVA form. */
export function parseKinematics(data: unknown): Chain {
  const fields = asFields(data, 'the kinematics');
  const form = fields.kinematic_param_type ?? 'SVA';
  if (form !== 'SVA') throw new RangeError(`the kinematics are in the form ${String(form)}, which this page cannot show`);
  const links = asList(fields.links, 'links').map(parseLink);
  const joints = asList(fields.joints, 'joints').map(parseJoint);
  const elements = order([...links, ...joints]);
  return { name: String(fields.name ?? ''), elements, joints: elements.filter(isJoint) };
}

export function isJoint(element: Element): element is Joint {
  return 'axis' in element;
}

/**
 * Where every element is at these joint positions: degrees of revolute joints, millimeters of prismatic
 * ones. Throws a RangeError if their number is wrong.
 */
export function placeElements(chain: Chain, positions: readonly number[]): PlacedElement[] {
  if (positions.length !== chain.joints.length)
    throw new RangeError(`"${chain.name}" takes ${chain.joints.length} joint positions, not ${positions.length}`);
  let at = 0;
  let pose = IDENTITY;
  return chain.elements.map((element) => {
    const start = pose;
    pose = compose(pose, isJoint(element) ? jointPose(element, positions[at++]!) : element.pose);
    return { element, start, end: pose };
  });
}

/** The pose of the end relative to the base. */
export function endPose(chain: Chain, positions: readonly number[]): Pose {
  return placeElements(chain, positions).at(-1)?.end ?? IDENTITY;
}

function jointPose(joint: Joint, value: number): Pose {
  if (joint.kind === 'revolute') return { point: [0, 0, 0], rotation: fromAxisAngle(joint.axis, (value * Math.PI) / 180) };
  const [x, y, z] = joint.axis;
  return { point: [x * value, y * value, z * value], rotation: NO_ROTATION };
}

function parseLink(data: Fields): Link {
  const id = requireText(data, 'id');
  const orientation = asFields(data.orientation ?? {}, `the orientation of "${id}"`);
  const value = asFields(orientation.value ?? {}, `the orientation of "${id}"`);
  const geometry = asFields(data.geometry ?? {}, `the geometry of "${id}"`);
  return {
    id,
    parent: requireText(data, 'parent'),
    pose: {
      point: parseVector(data.translation, `the translation of "${id}"`),
      rotation: parseOrientation(String(orientation.type ?? ''), value),
    },
    shape: Object.keys(geometry).length > 0 ? parseShape(geometry, id) : null,
  };
}

function parseJoint(data: Fields): Element {
  const [id, parent] = [requireText(data, 'id'), requireText(data, 'parent')];
  if (data.type === 'fixed') return { id, parent, pose: IDENTITY, shape: null };
  if (data.type !== 'revolute' && data.type !== 'continuous' && data.type !== 'prismatic')
    throw new RangeError(`joint "${id}" has the unknown type ${String(data.type)}`);
  const limit = (key: string, otherwise: number) =>
    data.type === 'continuous' ? otherwise : requireNumber(data[key], `"${key}" of joint "${id}"`);
  return {
    id,
    parent,
    kind: data.type === 'prismatic' ? 'prismatic' : 'revolute',
    axis: unitVector(parseVector(data.axis, `the axis of "${id}"`)),
    minimum: limit('min', -Infinity),
    maximum: limit('max', Infinity),
  };
}

/** The elements from the base to the end. */
function order(elements: readonly Element[]): Element[] {
  if (elements.length === 0) throw new RangeError('the kinematics have neither links nor joints');
  if (elements.length > MAX_ELEMENTS) throw new RangeError(`the kinematics have more than ${MAX_ELEMENTS} parts`);
  const after = new Map(elements.map((each) => [each.parent, each]));
  const ordered: Element[] = [];
  for (let next = after.get(WORLD); next !== undefined; next = after.get(next.id)) {
    ordered.push(next);
    after.delete(next.parent);
  }
  if (ordered.length !== elements.length) throw new RangeError('the kinematics are not a single chain that begins at the world');
  return ordered;
}

function parseVector(data: unknown, what: string): Vector {
  const fields = asFields(data ?? {}, what);
  const read = (key: string) => requireNumber(fields[key] ?? 0, `"${key}" of ${what}`);
  return [read('x'), read('y'), read('z')];
}

function requireText(data: Fields, key: string): string {
  const text = data[key];
  if (typeof text !== 'string' || text === '') throw new RangeError(`a link or joint has no "${key}"`);
  return text;
}

function asFields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new RangeError(`${what} must be an object`);
  return value as Fields;
}

function asList(value: unknown, key: string): Fields[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new RangeError(`"${key}" of the kinematics is not a list`);
  return value.map((each) => asFields(each, `an item of "${key}"`));
}

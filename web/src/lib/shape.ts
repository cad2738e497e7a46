/** Shapes that stand for the bodies of a machine, in millimeters. */

import { fromPoseMessage, parseOrientation, requireNumber, type PoseMessage } from './orientation';
import { boundsOfPly } from './ply';
import { compose, NO_ROTATION, type Pose, type Vector } from './pose';

interface Body {
  readonly label: string;
  /** Relative to the frame of the shape. */
  readonly center: Pose;
}

export type Shape = Body &
  (
    | { readonly kind: 'box'; readonly size: Vector }
    | { readonly kind: 'sphere'; readonly radius: number }
    /** The length of the whole capsule, along z. */
    | { readonly kind: 'capsule'; readonly radius: number; readonly length: number }
    | { readonly kind: 'point' }
  );

/** What the SDK's `Geometry` has of interest here. */
export interface GeometryMessage {
  readonly label: string;
  readonly center?: PoseMessage;
  readonly geometryType: { readonly case?: string; readonly value?: unknown };
}

/** Throws a RangeError if a number is not finite. A mesh becomes the box around its vertices, if they can be read. */
export function shapeFromMessage(message: GeometryMessage): Shape | null {
  const body: Body = { label: message.label, center: fromPoseMessage(message.center) };
  const value = (message.geometryType.value ?? {}) as Readonly<Record<string, unknown>>;
  switch (message.geometryType.case) {
    case 'box': {
      const size = asObject(value.dimsMm);
      return { ...body, kind: 'box', size: [read(size, 'x'), read(size, 'y'), read(size, 'z')] };
    }
    case 'sphere': {
      const radius = read(value, 'radiusMm');
      return radius > 0 ? { ...body, kind: 'sphere', radius } : { ...body, kind: 'point' };
    }
    case 'capsule':
      return { ...body, kind: 'capsule', radius: read(value, 'radiusMm'), length: read(value, 'lengthMm') };
    case 'mesh': {
      const box = value.mesh instanceof Uint8Array ? boundsOfPly(value.mesh) : null;
      if (box === null) return null;
      const center = compose(body.center, { point: box.center, rotation: NO_ROTATION });
      return { label: body.label, center, kind: 'box', size: box.size };
    }
    default:
      return null;
  }
}

/** Reads a geometry of a kinematics file, or null if it is none that can be shown. */
export function parseShape(data: Readonly<Record<string, unknown>>, label: string): Shape | null {
  const translation = asObject(data.translation);
  const orientation = asObject(data.orientation);
  const point: Vector = [read(translation, 'x'), read(translation, 'y'), read(translation, 'z')];
  const rotation = parseOrientation(String(orientation.type ?? ''), asObject(orientation.value));
  const body: Body = { label, center: { point, rotation } };
  switch (data.type || guessKind(data)) {
    case 'box':
      return { ...body, kind: 'box', size: [read(data, 'x'), read(data, 'y'), read(data, 'z')] };
    case 'sphere':
      return { ...body, kind: 'sphere', radius: read(data, 'r') };
    case 'capsule':
      return { ...body, kind: 'capsule', radius: read(data, 'r'), length: read(data, 'l') };
    case 'point':
      return { ...body, kind: 'point' };
    default:
      return null;
  }
}

/** `box 200 × 200 × 40 mm` */
export function describeShape(shape: Shape): string {
  const mm = (value: number) => String(Number(value.toFixed(1)));
  switch (shape.kind) {
    case 'box':
      return `box ${shape.size.map(mm).join(' × ')} mm`;
    case 'sphere':
      return `sphere, radius ${mm(shape.radius)} mm`;
    case 'capsule':
      return `capsule, radius ${mm(shape.radius)} mm, length ${mm(shape.length)} mm`;
    case 'point':
      return 'point';
  }
}

/** Older files omit the type. */
function guessKind(data: Readonly<Record<string, unknown>>): string {
  if (data.x || data.y || data.z) return 'box';
  if (data.l) return 'capsule';
  return data.r ? 'sphere' : 'point';
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function read(data: Readonly<Record<string, unknown>>, key: string): number {
  return requireNumber(data[key] ?? 0, `"${key}" of a geometry`);
}

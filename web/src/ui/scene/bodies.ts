/** Shapes, chains and point clouds as objects of a scene. */

import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CapsuleGeometry,
  Color,
  CylinderGeometry,
  EdgesGeometry,
  Float32BufferAttribute,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshLambertMaterial,
  Points,
  PointsMaterial,
  SphereGeometry,
  Vector3,
  type Object3D,
} from 'three';
import { isJoint, type Joint, type PlacedElement } from '../../lib/kinematics';
import type { PointCloud } from '../../lib/pcd';
import type { Pose } from '../../lib/pose';
import type { Shape } from '../../lib/shape';
import type { Space } from './space';

const POINT_RADIUS = 4;
const OPACITY = 0.35;
/** From near to far, for clouds without colors. */
const RAMP = ['--series-1', '--series-5', '--series-3', '--series-2'];

export function applyPose(object: Object3D, { point: [x, y, z], rotation }: Pose): void {
  object.position.set(x / 1000, y / 1000, z / 1000);
  object.quaternion.set(rotation.x, rotation.y, rotation.z, rotation.w);
}

/** A translucent body. */
export function shapeObject(space: Space, shape: Shape, token: string): Object3D {
  const material = new MeshLambertMaterial({ transparent: true, opacity: OPACITY, depthWrite: false });
  space.paint(material, token);
  const body = new Mesh(shapeGeometry(shape), material);
  applyPose(body, shape.center);
  if (shape.kind === 'box') {
    const edges = new LineBasicMaterial({ transparent: true, opacity: 0.8 });
    space.paint(edges, token);
    body.add(new LineSegments(new EdgesGeometry(body.geometry), edges));
  }
  return body;
}

/** Only the edges of a box, or of the box around another shape. */
export function outlineObject(space: Space, shape: Shape, token: string): Object3D {
  const material = new LineBasicMaterial();
  space.paint(material, token);
  const geometry = shapeGeometry(shape);
  const outline = new LineSegments(new EdgesGeometry(geometry, 30), material);
  geometry.dispose();
  applyPose(outline, shape.center);
  return outline;
}

/** The links of an arm or the axes of a gantry, which `placeChain` puts where they are. */
export function chainObject(space: Space, elements: readonly PlacedElement[], token: string): Group {
  const chain = new Group();
  for (const { element } of elements) {
    const part = new Group();
    if (!isJoint(element) && element.shape !== null) part.add(shapeObject(space, element.shape, token));
    chain.add(part);
  }
  const material = new LineBasicMaterial();
  space.paint(material, token);
  const bones = new LineSegments(new BufferGeometry(), material);
  bones.name = 'bones';
  // Its points move, so that what is computed from them once is wrong later.
  bones.frustumCulled = false;
  chain.add(bones);
  placeChain(chain, elements);
  return chain;
}

export function placeChain(chain: Group, elements: readonly PlacedElement[]): void {
  const points: number[] = [];
  for (const [index, { start, end }] of elements.entries()) {
    const part = chain.children[index];
    if (part === undefined) return;
    applyPose(part, start);
    points.push(...start.point.map((each) => each / 1000), ...end.point.map((each) => each / 1000));
  }
  const bones = chain.getObjectByName('bones') as LineSegments | undefined;
  if (bones === undefined) return;
  bones.geometry.dispose();
  bones.geometry = new BufferGeometry().setAttribute('position', new Float32BufferAttribute(points, 3));
}

/** The way of a prismatic joint between its limits, relative to where the joint begins; null if it has none. */
export function railObject(space: Space, joint: Joint, radius: number, token: string): Object3D | null {
  const length = (joint.maximum - joint.minimum) / 1000;
  if (joint.kind !== 'prismatic' || !Number.isFinite(length) || length <= 0) return null;
  const material = new MeshLambertMaterial();
  space.paint(material, token);
  const rail = new Mesh(new CylinderGeometry(radius, radius, length, 12), material);
  const axis = new Vector3(...joint.axis);
  rail.position.copy(axis).multiplyScalar((joint.minimum + joint.maximum) / 2000);
  // A cylinder is along y.
  rail.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), axis);
  return rail;
}

/** A cloud in the colors of the file, in one color, or by the distance along z. */
export function cloudObject(space: Space, cloud: PointCloud, token?: string): Points {
  const geometry = new BufferGeometry();
  geometry.setAttribute('position', new BufferAttribute(cloud.positions, 3));
  const material = new PointsMaterial({ size: cloud.count > 50_000 ? 2 : 3, sizeAttenuation: false });
  const points = new Points(geometry, material);
  // Points are small and many: nobody picks one, and looking for it would take long.
  points.raycast = () => {};
  if (token !== undefined) space.paint(material, token);
  else {
    const colors = cloud.colors ?? rampColors(space, cloud);
    geometry.setAttribute('color', new BufferAttribute(colors, 3, true));
    material.vertexColors = true;
  }
  return points;
}

function rampColors(space: Space, cloud: PointCloud): Uint8Array {
  const ramp = RAMP.map((token) => new Color(space.color(token)));
  const colors = new Uint8Array(cloud.count * 3);
  const [low, span] = [cloud.low[2], Math.max(cloud.high[2] - cloud.low[2], 1e-9)];
  const mixed = new Color();
  for (let index = 0; index < cloud.count; index += 1) {
    const place = ((cloud.positions[index * 3 + 2]! - low) / span) * (ramp.length - 1);
    const first = Math.min(Math.floor(place), ramp.length - 2);
    mixed.lerpColors(ramp[first]!, ramp[first + 1]!, place - first);
    colors[index * 3] = mixed.r * 255;
    colors[index * 3 + 1] = mixed.g * 255;
    colors[index * 3 + 2] = mixed.b * 255;
  }
  return colors;
}

function shapeGeometry(shape: Shape): BufferGeometry {
  const mm = (value: number) => Math.max(value, 0.1) / 1000;
  switch (shape.kind) {
    case 'box':
      return new BoxGeometry(...(shape.size.map(mm) as [number, number, number]));
    case 'sphere':
      return new SphereGeometry(mm(shape.radius), 24, 16);
    case 'capsule':
      // Ours are along z, and their length includes the round ends.
      return new CapsuleGeometry(mm(shape.radius), mm(shape.length - 2 * shape.radius), 8, 20).rotateX(Math.PI / 2);
    case 'point':
      return new SphereGeometry(mm(POINT_RADIUS), 8, 6);
  }
}

/** The coordinate frames of a machine: their parents, and their poses in the world. */

import { placeElements, type Chain, type PlacedElement } from '../../lib/kinematics';
import { compose, IDENTITY, type Pose } from '../../lib/pose';
import type { Shape } from '../../lib/shape';

export const WORLD = 'world';

/** A part of the machine: its pose relative to its parent, and the chain with which it moves what is attached to it. */
export interface FramePart {
  readonly name: string;
  readonly parent: string;
  readonly pose: Pose;
  readonly moves: boolean;
  /** Null: it does not move, or how it moves cannot be read. */
  readonly chain: Chain | null;
  readonly shape: Shape | null;
  /** Why the part cannot be shown as it is, or nothing. */
  readonly problem?: string;
}

/** Where the joints of a part are: their positions, the pose of its end, or why neither is known. */
export type Motion = { readonly joints: readonly number[] } | { readonly end: Pose } | { readonly problem: string };

export interface Frame {
  readonly name: string;
  readonly parent: string;
  /** The number of frames between it and the world. */
  readonly depth: number;
  /** Relative to the parent. Null: not known. */
  readonly local: Pose | null;
  readonly world: Pose | null;
  readonly shape: Shape | null;
  /** The elements of the chain that begins at this frame, relative to it. */
  readonly elements: readonly PlacedElement[];
  readonly moves: boolean;
  readonly problem: string;
}

/**
 * Every frame after its parent, the world first. A part that moves has two frames: `<name>_origin`,
 * the base of the chain, and `<name>`, its end, to which other parts are attached.
 */
export function placeFrames(parts: readonly FramePart[], motions: ReadonlyMap<string, Motion>): Frame[] {
  const world: Frame = {
    ...{ name: WORLD, parent: '', depth: 0, local: IDENTITY, world: IDENTITY },
    ...{ shape: null, elements: [], moves: false, problem: '' },
  };
  const children = new Map<string, FramePart[]>();
  for (const part of parts) {
    const siblings = children.get(part.parent);
    if (siblings === undefined) children.set(part.parent, [part]);
    else siblings.push(part);
  }
  const seen = new Set([WORLD]);
  const frames: Frame[] = [];
  const place = (frame: Frame) => {
    frames.push(frame);
    for (const part of children.get(frame.name) ?? []) {
      if (seen.has(part.name)) continue;
      seen.add(part.name);
      if (part.moves) placeMoving(frame, part);
      else place(attach(frame, part, part.name));
    }
  };
  const placeMoving = (parent: Frame, part: FramePart) => {
    const [elements, end, problem] = follow(part.chain, motions.get(part.name));
    const origin = { ...attach(parent, part, `${part.name}_origin`), elements };
    frames.push(origin);
    place({
      ...{ name: part.name, parent: origin.name, depth: origin.depth + 1, local: end },
      ...{ world: chainPoses(origin.world, end), shape: null, elements: [], moves: true, problem },
    });
  };
  place(world);
  for (const part of parts) if (!seen.has(part.name)) frames.push(lose(part));
  return frames;
}

function attach(parent: Frame, part: FramePart, name: string): Frame {
  return {
    ...{ name, parent: parent.name, depth: parent.depth + 1, local: part.pose },
    ...{ world: chainPoses(parent.world, part.pose), shape: part.shape, elements: [], moves: false },
    problem: part.problem ?? '',
  };
}

function lose(part: FramePart): Frame {
  const problem = `its parent "${part.parent}" is not connected to the world`;
  return { ...attach({ depth: 0, name: part.parent, world: null } as Frame, part, part.name), problem };
}

function chainPoses(outer: Pose | null, inner: Pose | null): Pose | null {
  return outer === null || inner === null ? null : compose(outer, inner);
}

function follow(chain: Chain | null, motion: Motion | undefined): [readonly PlacedElement[], Pose | null, string] {
  if (chain?.joints.length === 0) motion = { joints: [] };
  if (motion === undefined) return [[], null, ''];
  if ('problem' in motion) return [[], null, motion.problem];
  if ('end' in motion) return [[], motion.end, ''];
  if (chain === null) return [[], null, 'its kinematics are not known'];
  try {
    const elements = placeElements(chain, motion.joints);
    return [elements, elements.at(-1)?.end ?? IDENTITY, ''];
  } catch (error) {
    return [[], null, (error as Error).message];
  }
}

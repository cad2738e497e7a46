/** The joints of an arm as its kinematics describe them. */

export interface JointLimits {
  readonly name: string;
  readonly unit: '°' | 'mm';
  readonly min: number;
  readonly max: number;
}

interface KinematicJoint {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly min?: unknown;
  readonly max?: unknown;
}

/** Reads the joints from kinematics, which a module may have made: what is not there is unlimited. */
export function parseJoints(kinematics: unknown): JointLimits[] {
  const joints = (kinematics as { joints?: unknown } | null)?.joints;
  if (!Array.isArray(joints)) return [];
  return joints.map((each: KinematicJoint | null, index) => ({
    name: typeof each?.id === 'string' && each.id ? each.id : `joint ${index + 1}`,
    unit: each?.type === 'prismatic' ? 'mm' : '°',
    min: typeof each?.min === 'number' ? each.min : -Infinity,
    max: typeof each?.max === 'number' ? each.max : Infinity,
  }));
}

/** The joint with this number, where the kinematics know fewer than there are. */
export function unknownJoint(index: number): JointLimits {
  return { name: `joint ${index + 1}`, unit: '°', min: -Infinity, max: Infinity };
}

/** The next position of a jog: one step on, but within the limits; undefined at a limit. */
export function nextStep(value: number, step: number, min: number, max: number): number | undefined {
  const next = Math.min(max, Math.max(min, value + step));
  return Math.abs(next - value) < 1e-6 ? undefined : next;
}

import { ArmClient, GantryClient, type RobotClient } from '@viamrobotics/sdk';
import type { FramePart, Motion } from './frame_tree';
import { parseKinematics, type Chain } from '../../lib/kinematics';
import { fromPoseMessage } from '../../lib/orientation';
import { IDENTITY } from '../../lib/pose';
import { shapeFromMessage } from '../../lib/shape';
import { describeError } from '../../machine/errors';
import type { Resource } from '../../machine/status';

type Config = Awaited<ReturnType<RobotClient['frameSystemConfig']>>[number];

const TIMEOUT = { timeoutMs: 5000 };

/** A part of the frame system, with the reason if something in it cannot be shown. */
export function readPart(config: Config): FramePart {
  const name = config.frame?.referenceFrame ?? '';
  const parent = config.frame?.poseInObserverFrame?.referenceFrame || 'world';
  let pose = IDENTITY;
  let chain: Chain | null = null;
  let shape = null;
  let problem = '';
  const kinematics = (config.kinematics?.toJson() ?? {}) as object;
  const moves = Object.keys(kinematics).length > 0;
  try {
    pose = fromPoseMessage(config.frame?.poseInObserverFrame?.pose);
    const body = config.frame?.physicalObject;
    if (body !== undefined) shape = shapeFromMessage(body);
    if (moves) chain = parseKinematics(kinematics);
  } catch (error) {
    problem = describeError(error);
  }
  return { name, parent, pose, moves, chain, shape, problem };
}

/** Asks where the joints of every part are. One that does not answer does not hold up the others. */
export async function readMotions(
  robot: RobotClient,
  parts: readonly FramePart[],
  resources: readonly Resource[],
): Promise<ReadonlyMap<string, Motion>> {
  const movers = parts.filter((each) => each.moves && each.chain?.joints.length !== 0);
  const motions = movers.map(async ({ name, chain }): Promise<[string, Motion]> => {
    try {
      return [name, await readMotion(robot, name, chain === null ? undefined : findMover(resources, name))];
    } catch (error) {
      return [name, { problem: describeError(error) }];
    }
  });
  return new Map(await Promise.all(motions));
}

function findMover(resources: readonly Resource[], name: string): Resource | undefined {
  return resources.find((each) => each.shortName === name && (each.subtype === 'arm' || each.subtype === 'gantry'));
}

/** The machine itself is asked about a frame that has another name than its component, or moves in an unknown way. */
async function readMotion(robot: RobotClient, name: string, mover: Resource | undefined): Promise<Motion> {
  if (mover?.subtype === 'arm') return { joints: (await new ArmClient(robot, name).getJointPositions({}, TIMEOUT)).values };
  if (mover?.subtype === 'gantry') return { joints: await new GantryClient(robot, name).getPosition({}, TIMEOUT) };
  return { end: fromPoseMessage((await robot.getPose(name, `${name}_origin`, [])).pose) };
}

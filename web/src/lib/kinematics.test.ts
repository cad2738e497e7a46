import { describe, expect, test } from 'vitest';
import { placeFrames, type FramePart } from '../views/frames/frame_tree';
import { endPose, isJoint, parseKinematics, placeElements } from './kinematics';
import { toPoseMessage } from './orientation';
import { compose, IDENTITY, NO_ROTATION } from './pose';

const link = (id: string, parent: string, z: number, geometry: object = {}) => ({
  ...{ id, parent, translation: { x: 0, y: 0, z } },
  geometry: { ...geometry, translation: { z: z / 2 } },
});
const joint = (id: string, parent: string, axis: 'y' | 'z') => ({ id, type: 'revolute', parent, axis: { [axis]: 1 }, min: -360, max: 360 });

// The fake arm of the server; what is expected was computed with cogwork.spatial.
const DESK_ARM = {
  name: 'desk_arm',
  kinematic_param_type: 'SVA',
  links: [
    link('base', 'world', 90, { type: 'box', x: 140, y: 140, z: 90 }),
    link('shoulder_bracket', 'waist', 60, { r: 45, l: 120 }),
    link('upper_arm', 'shoulder', 280, { type: 'capsule', r: 40, l: 340 }),
    link('forearm', 'elbow', 140, { type: 'capsule', r: 35, l: 200 }),
    link('wrist', 'forearm_roll', 120, { type: 'capsule', r: 32, l: 170 }),
    link('hand', 'wrist_pitch', 80, { type: 'capsule', r: 30, l: 120 }),
    link('flange', 'flange_roll', 40, { type: 'box', x: 60, y: 60, z: 40 }),
  ],
  joints: [
    joint('waist', 'base', 'z'),
    joint('shoulder', 'shoulder_bracket', 'y'),
    joint('elbow', 'upper_arm', 'y'),
    joint('forearm_roll', 'forearm', 'z'),
    joint('wrist_pitch', 'wrist', 'y'),
    joint('flange_roll', 'hand', 'z'),
  ],
};
const BENT = [10, 20, 30, 40, 50, 60];

const ODD = {
  name: 'odd',
  links: [
    {
      ...{ id: 'a', parent: 'world', translation: { x: 10, y: -20, z: 30 } },
      orientation: { type: 'ov_degrees', value: { x: 1, y: 1, z: 0, th: 35 } },
    },
    { id: 'b', parent: 'j1', translation: { x: 0, y: 100, z: 0 } },
    { id: 'c', parent: 'f', translation: { z: 5 }, orientation: { type: 'euler_angles', value: { roll: 0.2, pitch: 0.3, yaw: 0.4 } } },
  ],
  joints: [
    { id: 'j1', type: 'revolute', parent: 'a', axis: { x: 0, y: 0, z: 2 }, min: -90, max: 90 },
    { id: 'j2', type: 'prismatic', parent: 'b', axis: { x: 3, y: 0, z: 4 }, min: 0, max: 500 },
    { id: 'f', type: 'fixed', parent: 'j2' },
  ],
};

describe('kinematics', () => {
  test.each([
    [DESK_ARM, [0, 0, 0, 0, 0, 0], [0, 0, 810, 0, 0, 1, 0]],
    [
      DESK_ARM,
      BENT,
      [
        382.9633335537625, 127.52676832758371, 575.8758217978308, 0.7708908077430431, 0.6359288485852405, -0.03635742117269836,
        89.52015163485498,
      ],
    ],
    [
      DESK_ARM,
      [-90, -45, 100, -170, -80, 300],
      [
        20.521208599540063, -98.81266281246359, 413.7376419979686, 0.17101007166283386, -0.6985252502463255, -0.6948510848794732,
        131.4079863373088,
      ],
    ],
    [
      ODD,
      [25, 150],
      [
        7.919489376369576, 158.85720592026732, 71.6025403784439, 0.47614178467363066, 0.8479769884670671, -0.2328605331912929,
        83.04399172837213,
      ],
    ],
  ])('the end of $name is where the server has it at %j', (kinematics, positions, wanted) => {
    const { x, y, z, oX, oY, oZ, theta } = toPoseMessage(endPose(parseKinematics(kinematics), positions));
    for (const [index, value] of [x, y, z, oX, oY, oZ, theta].entries()) expect(value).toBeCloseTo(wanted[index]!, 6);
  });

  test('geometries are where the arm reports them', () => {
    const placed = placeElements(parseKinematics(DESK_ARM), BENT).find(({ element }) => element.id === 'wrist')!;
    const shape = isJoint(placed.element) ? null : placed.element.shape;
    expect(shape).toMatchObject({ kind: 'capsule', radius: 32, length: 170 });
    const [x, y, z] = compose(placed.start, shape!.center).point;
    expect([x, y, z].map((each) => each.toFixed(6))).toEqual(['245.192046', '43.233973', '541.671456']);
  });

  test.each([
    [null, 'the kinematics must be an object'],
    [{ kinematic_param_type: 'DH' }, 'which this page cannot show'],
    [{}, 'neither links nor joints'],
    [{ links: [{ id: 'a', parent: 'a' }] }, 'not a single chain'],
    [
      {
        links: [
          { id: 'a', parent: 'world' },
          { id: 'b', parent: 'world' },
        ],
      },
      'not a single chain',
    ],
    [{ joints: [{ id: 'j', parent: 'world', type: 'ball' }] }, 'unknown type ball'],
    [{ joints: [{ id: 'j', parent: 'world', type: 'prismatic', axis: {}, min: 0, max: 1 }] }, 'of a direction must be finite'],
    [{ links: [{ id: 'a', parent: 'world', translation: { x: 'far' } }] }, 'is not a finite number'],
  ])('%j is refused', (kinematics, reason) => {
    expect(() => parseKinematics(kinematics)).toThrow(reason);
  });

  test('a wrong number of positions is refused', () => {
    expect(() => endPose(parseKinematics(ODD), [1])).toThrow('"odd" takes 2 joint positions, not 1');
  });
});

describe('frames', () => {
  const part = (name: string, parent: string, x: number, more: Partial<FramePart> = {}): FramePart => ({
    ...{ name, parent, pose: { point: [x, 0, 0], rotation: NO_ROTATION }, moves: false, chain: null, shape: null },
    ...more,
  });
  const arm = part('arm', 'table', 10, { moves: true, chain: parseKinematics(DESK_ARM) });

  test('what is attached to an arm moves with its end', () => {
    const frames = placeFrames([part('tool', 'arm', 0), arm, part('table', 'world', 100)], new Map([['arm', { joints: BENT }]]));
    expect(frames.map((each) => [each.depth, each.name, each.parent])).toEqual([
      [0, 'world', ''],
      [1, 'table', 'world'],
      [2, 'arm_origin', 'table'],
      [3, 'arm', 'arm_origin'],
      [4, 'tool', 'arm'],
    ]);
    expect(frames[4]!.world!.point[0]).toBeCloseTo(110 + 382.9633335537625, 6);
  });

  test('unknown joints make the poses behind them unknown, with the reason', () => {
    const parts = [part('table', 'world', 100), arm, part('tool', 'arm', 0)];
    const frames = placeFrames(parts, new Map([['arm', { problem: 'the arm is off' }]]));
    expect(frames.map((each) => each.world !== null)).toEqual([true, true, true, false, false]);
    expect(frames[3]!.problem).toBe('the arm is off');
  });

  test('an end without joint positions is taken as it is', () => {
    const frames = placeFrames([part('table', 'world', 1), arm], new Map([['arm', { end: IDENTITY }]]));
    expect(frames.at(-1)!.world!.point).toEqual([11, 0, 0]);
  });

  test('an arm whose kinematics cannot be read is where the machine says', () => {
    const parts = [part('arm', 'world', 1, { moves: true })];
    expect(placeFrames(parts, new Map()).at(-1)!.world).toBeNull();
    expect(placeFrames(parts, new Map([['arm', { end: IDENTITY }]])).at(-1)!.world!.point).toEqual([1, 0, 0]);
  });

  test('cycles, lost parents and names in use neither hang nor hide other frames', () => {
    const parts = [
      part('a', 'b', 0),
      part('b', 'a', 0),
      part('lost', 'gone', 0),
      part('x', 'world', 1),
      part('x', 'world', 2),
      part('world', 'x', 3),
    ];
    const frames = placeFrames(parts, new Map());
    expect(frames.filter((each) => each.world !== null).map((each) => each.name)).toEqual(['world', 'x']);
    expect(frames.find((each) => each.name === 'lost')!.problem).toBe('its parent "gone" is not connected to the world');
  });
});

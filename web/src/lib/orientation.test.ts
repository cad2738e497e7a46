import { describe, expect, test } from 'vitest';
import { fromOvDegrees, parseOrientation, toOvDegrees } from './orientation';

// Computed with cogwork.spatial.orientation: the vector, its quaternion (w, x, y, z), the vector again.
const VECTORS = [
  [
    [0, 0, 1, 0],
    [1, 0, 0, 0],
    [0, 0, 1, 0],
  ],
  [
    [0, 0, 1, 30],
    [0.9659258262890684, 0, 0, 0.25881904510252074],
    [0, 0, 1, 30],
  ],
  [
    [0, 0, -1, 45],
    [0, 0.3826834323650897, 0.9238795325112867, 0],
    [0, 0, -1, 45],
  ],
  [
    [0, 0, -1, -120],
    [0, 0.8660254037844385, -0.5, 0],
    [0, 0, -1, -120],
  ],
  [
    [1, 0, 0, 0],
    [0.7071067811865476, 0, 0.7071067811865475, 0],
    [1, 0, 0, 0],
  ],
  [
    [0, 1, 0, 90],
    [0, 0, 0.7071067811865475, 0.7071067811865476],
    [0, 1, 0, 90],
  ],
  [
    [-1, 0, 0, 10],
    [-0.061628416716219304, -0.7044160264027586, 0.06162841671621939, 0.7044160264027587],
    [-1, 0, 0, 10],
  ],
  [
    [1, 2, 3, 40],
    [0.588038069590994, -0.0639343867302402, 0.3082540045559692, 0.7450524086132021],
    [0.2672612419124244, 0.5345224838248487, 0.8017837257372732, 40],
  ],
  [
    [-0.3, 0.2, -0.9, -170],
    [0.18533618125627654, -0.3653647986432159, -0.9113989931576946, -0.03887080010603828],
    [-0.3094263738776381, 0.20628424925175864, -0.928279121632914, -170],
  ],
  [
    [0.005, 0.002, 1, 25],
    [0.9762925555346214, -0.00043519331278982096, 0.002657150559681123, 0.21643843504646285],
    [0.004999927501576837, 0.0019999710006307347, 0.9999855003153674, 25],
  ],
  [
    [0.005, -0.002, -1, 25],
    [0.002657150559681123, 0.21643843504646285, 0.9762925555346214, -0.00043519331278982096],
    [0.004999927501576837, -0.0019999710006307347, -0.9999855003153674, 25],
  ],
  [
    [0, 0, 0, 15],
    [0.9914448613738105, 0, 0, 0.1305261922200516],
    [0, 0, 1, 15],
  ],
] as [number[], number[], number[]][];

// Likewise, as configurations and kinematics write them.
const WRITTEN = [
  ['ov_radians', { x: 1, y: 2, z: 3, th: 0.5 }, [0.6588434951559208, -0.09410843612924637, 0.30041927265185736, 0.683240156723364]],
  ['euler_angles', { roll: 0.1, pitch: -0.4, yaw: 2 }, [0.5205152130040839, 0.19343113392285013, -0.06598964824368826, 0.8290317700699459]],
  ['axis_angles', { X: 1, Y: 1, Z: 0, TH: 1.2 }, [0.8253356149096783, 0.39926252188357425, 0.39926252188357425, 0]],
  ['quaternion', { w: 1, x: 2, y: 3, z: 4 }, [0.18257418583505536, 0.3651483716701107, 0.5477225575051661, 0.7302967433402214]],
] as [string, Record<string, number>, number[]][];

describe('orientation', () => {
  test.each(VECTORS)('the vector %j becomes the quaternion of the server and comes back', (vector, quaternion, back) => {
    const found = fromOvDegrees(...(vector as [number, number, number, number]));
    expectClose([found.w, found.x, found.y, found.z], quaternion);
    expectClose(toOvDegrees(found), back);
  });

  test.each(WRITTEN)('%s is read as the server reads it', (kind, value, quaternion) => {
    const found = parseOrientation(kind, value);
    expectClose([found.w, found.x, found.y, found.z], quaternion);
  });

  test('what is not an orientation is refused', () => {
    expect(() => parseOrientation('compass', { x: 1 })).toThrow('"compass" is not a type of orientation');
    expect(() => parseOrientation('quaternion', { w: 'one' })).toThrow('"w" of quaternion is not a finite number');
  });
});

function expectClose(found: readonly number[], wanted: readonly number[]) {
  for (const [index, value] of wanted.entries()) expect(found[index]).toBeCloseTo(value, 9);
}

import { describe, expect, test } from 'vitest';
import { MAX_POINTS, parsePcd } from './pcd';

const header = (points: number, data: string, fields = 'x y z rgb', size = '4 4 4 4', type = 'F F F I') =>
  ['# .PCD v0.7', 'VERSION .7', `FIELDS ${fields}`, `SIZE ${size}`, `TYPE ${type}`, `COUNT ${size.replaceAll(/\d/g, '1')}`]
    .concat([`WIDTH ${points}`, 'HEIGHT 1', 'VIEWPOINT 0 0 0 1 0 0 0', `POINTS ${points}`, `DATA ${data}`, ''])
    .join('\n');
const encode = (text: string) => new TextEncoder().encode(text);

function join(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

describe('point clouds', () => {
  test('binary points with colors are read, wherever the bytes begin', () => {
    const data = new DataView(new ArrayBuffer(32));
    for (const [index, value] of [1, -2, 3.5].entries()) data.setFloat32(index * 4, value, true);
    data.setUint32(12, 0xff8040, true);
    for (const [index, value] of [-1, 0, 0.5].entries()) data.setFloat32(16 + index * 4, value, true);
    data.setUint32(28, 0x010203, true);
    const file = join(encode(' '), encode(header(2, 'binary')), new Uint8Array(data.buffer)).subarray(1);
    const cloud = parsePcd(file);
    expect([...cloud.positions]).toEqual([1, -2, 3.5, -1, 0, 0.5]);
    expect([...cloud.colors!]).toEqual([255, 128, 64, 1, 2, 3]);
    expect([cloud.count, cloud.total, cloud.low, cloud.high]).toEqual([2, 2, [-1, -2, 0.5], [1, 0, 3.5]]);
  });

  test('text is read, in every way to write a number', () => {
    const rows = '0.25 -1.5e-1 +2 16711680\n\n  1e1\t.5 -.5 255\r\n';
    const cloud = parsePcd(encode(header(2, 'ascii') + rows));
    expect([...cloud.positions].map((each) => Number(each.toFixed(6)))).toEqual([0.25, -0.15, 2, 10, 0.5, -0.5]);
    expect([...cloud.colors!]).toEqual([255, 0, 0, 0, 0, 255]);
  });

  test('a color that is written as a float has the bits of its bytes', () => {
    const bits = new DataView(new ArrayBuffer(4));
    bits.setUint32(0, 0x00804020);
    const rows = `0 0 0 ${bits.getFloat32(0)}\n`;
    expect([...parsePcd(encode(header(1, 'ascii', 'x y z rgb', '4 4 4 4', 'F F F F') + rows)).colors!]).toEqual([128, 64, 32]);
  });

  test('other fields are skipped, and doubles are read', () => {
    const data = new DataView(new ArrayBuffer(26));
    data.setFloat64(2, 1, true);
    data.setFloat64(10, 2, true);
    data.setFloat64(18, 3, true);
    const cloud = parsePcd(join(encode(header(1, 'binary', 'ring x y z', '2 8 8 8', 'U F F F')), new Uint8Array(data.buffer)));
    expect([...cloud.positions]).toEqual([1, 2, 3]);
    expect(cloud.colors).toBeNull();
  });

  test('points without a position are left out', () => {
    const cloud = parsePcd(encode(header(3, 'ascii', 'x y z', '4 4 4', 'F F F') + 'nan nan nan\n1 2 3\n1 inf 2\n'));
    expect([cloud.count, cloud.total, [...cloud.positions]]).toEqual([1, 3, [1, 2, 3]]);
  });

  test('an empty cloud has no points', () => {
    const cloud = parsePcd(encode(header(0, 'binary')));
    expect([cloud.count, cloud.low, cloud.high]).toEqual([0, [0, 0, 0], [0, 0, 0]]);
  });

  test('of too many points, every other one is shown', () => {
    const count = MAX_POINTS + 1;
    const cloud = parsePcd(join(encode(header(count, 'binary', 'x y z', '4 4 4', 'F F F')), new Uint8Array(count * 12)));
    expect([cloud.count, cloud.total]).toEqual([Math.ceil(count / 2), count]);
  });

  test.each([
    ['', 'its header has no DATA line'],
    ['\n'.repeat(10_000), 'its header has no DATA line'],
    ['DATA ascii\n', 'has no field x'],
    [header(1, 'binary_compressed'), 'are binary_compressed'],
    [header(1e15, 'binary'), 'is incomplete'],
    [header(1e15, 'ascii'), 'is incomplete'],
    [header(2, 'binary') + 'x'.repeat(31), '2 points need 32 bytes, but it has 31'],
    [header(1, 'ascii', 'x y z', '4 4', 'F F F') + '1 2 3\n', 'no valid SIZE'],
    [header(1, 'ascii', 'x y z', '4 4 4', 'F F I') + '1 2 3\n', 'field z of the PCD file is not a float'],
    [header(1, 'ascii', 'x y', '4 4', 'F F') + '1 2\n', 'has no field z'],
    [header(2, 'ascii') + '1 2 3 4\n1 2 3     \n', 'point 2 of the PCD file has 3 numbers, not 4'],
    [header(2, 'ascii') + `1 2 3 4\n${' '.repeat(20)}`, 'ends after 1 of 2 points'],
    [header(1, 'ascii').replace('POINTS 1', 'POINTS -1') + '1 2 3 4\n', 'no valid POINTS'],
  ])('%j is refused', (file, reason) => {
    expect(() => parsePcd(encode(file))).toThrow(reason);
  });
});

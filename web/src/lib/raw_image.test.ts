import { describe, expect, it } from 'vitest';
import { findRange, readDepth, turbo } from './raw_image';

function encode(width: number, height: number, values: readonly number[]): Uint8Array {
  const data = new Uint8Array(24 + 2 * values.length);
  data.set(new TextEncoder().encode('DEPTHMAP'));
  const view = new DataView(data.buffer);
  view.setBigUint64(8, BigInt(width));
  view.setBigUint64(16, BigInt(height));
  values.forEach((value, index) => view.setUint16(24 + 2 * index, value));
  return data;
}

describe('readDepth', () => {
  it('reads size and values', () => {
    const map = readDepth(encode(3, 1, [0, 700, 65535]));
    expect([map.width, map.height, [...map.values]]).toEqual([3, 1, [0, 700, 65535]]);
  });
  it('reads a part of a larger buffer', () => {
    const data = encode(1, 1, [42]);
    const larger = new Uint8Array(data.length + 5);
    larger.set(data, 5);
    expect([...readDepth(larger.subarray(5)).values]).toEqual([42]);
  });
  it('refuses what is not a depth map, truncated or absurdly large', () => {
    expect(() => readDepth(new Uint8Array(30))).toThrow('header');
    expect(() => readDepth(encode(2, 2, [1, 2, 3]))).toThrow('declares 2x2');
    expect(() => readDepth(encode(2 ** 40, 2 ** 20, []))).toThrow('cannot be shown');
  });
});

describe('findRange', () => {
  it('leaves out what is not measured', () => expect(findRange(Uint16Array.of(0, 9, 5))).toEqual({ low: 5, high: 9 }));
  it('is null if nothing is measured', () => expect(findRange(Uint16Array.of(0, 0))).toBeNull());
});

it('colors far blue and near red', () => {
  const [far, near] = [turbo(0), turbo(1)];
  expect(far[2]).toBeGreaterThan(far[0]);
  expect(near[0]).toBeGreaterThan(near[2]);
});

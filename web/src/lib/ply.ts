/** The extent of a mesh in a PLY file. */

import type { Vector } from './pose';

const MAX_VERTICES = 200_000;
const MAX_HEADER = 4096;

/** The box around the vertices of an ASCII or a little-endian PLY file, whose vertices begin with x, y and z as floats. */
export function boundsOfPly(file: Uint8Array): { center: Vector; size: Vector } | null {
  const head = new TextDecoder('latin1').decode(file.subarray(0, MAX_HEADER));
  const end = head.indexOf('end_header');
  const found = /element vertex (\d+)\r?\n((?:property .*\r?\n)+)/.exec(head.slice(0, Math.max(end, 0)));
  if (!head.startsWith('ply') || found === null) return null;
  const count = Math.min(Number(found[1]), MAX_VERTICES);
  const properties = found[2]!.trim().split(/\r?\n/);
  const start = head.indexOf('\n', end) + 1;
  const vertices = head.includes('format ascii')
    ? readText(file.subarray(start), count)
    : readBinary(file.subarray(start), count, properties);
  const low: [number, number, number] = [Infinity, Infinity, Infinity];
  const high: [number, number, number] = [-Infinity, -Infinity, -Infinity];
  for (const vertex of vertices) {
    for (const axis of [0, 1, 2] as const) {
      low[axis] = Math.min(low[axis], vertex[axis]);
      high[axis] = Math.max(high[axis], vertex[axis]);
    }
  }
  const size: Vector = [high[0] - low[0], high[1] - low[1], high[2] - low[2]];
  if (!size.every(Number.isFinite)) return null;
  // Meshes are in meters, as in URDF files.
  const mm = ([x, y, z]: Vector): Vector => [x * 1000, y * 1000, z * 1000];
  return { center: mm([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2]), size: mm(size) };
}

function* readText(data: Uint8Array, count: number): Generator<Vector> {
  const lines = new TextDecoder('latin1').decode(data).split('\n', count);
  for (const line of lines) {
    const [x = NaN, y = NaN, z = NaN] = line.trim().split(/\s+/, 3).map(Number);
    yield [x, y, z];
  }
}

const SIZES: Readonly<Record<string, number>> = {
  ...{ char: 1, uchar: 1, int8: 1, uint8: 1, short: 2, ushort: 2, int16: 2, uint16: 2 },
  ...{ int: 4, uint: 4, int32: 4, uint32: 4, float: 4, float32: 4, double: 8, float64: 8 },
};

function* readBinary(data: Uint8Array, count: number, properties: readonly string[]): Generator<Vector> {
  const types = properties.map((line) => line.split(/\s+/)[1] ?? '');
  const stride = types.reduce((sum, type) => sum + (SIZES[type] ?? NaN), 0);
  const isDouble = types[0] === 'double' || types[0] === 'float64';
  if (!Number.isFinite(stride) || !/ x$/.test(properties[0]!.trim())) return;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const width = isDouble ? 8 : 4;
  const get = (at: number) => (isDouble ? view.getFloat64(at, true) : view.getFloat32(at, true));
  for (let at = 0; count > 0 && at + Math.max(stride, 3 * width) <= view.byteLength; at += stride, count -= 1) {
    yield [get(at), get(at + width), get(at + 2 * width)];
  }
}

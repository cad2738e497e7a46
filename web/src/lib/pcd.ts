/** Point clouds in PCD files: ASCII and binary, with the fields x, y, z in meters and optionally rgb. */

export const MAX_POINTS = 2_000_000;

export interface PointCloud {
  /** x, y and z of every point, one after the other. */
  readonly positions: Float32Array;
  /** Red, green and blue of every point; null if the file has no colors. */
  readonly colors: Uint8Array | null;
  /** How many points are here. */
  readonly count: number;
  /** How many points the file has; those without a position and, of too many, every other one are left out. */
  readonly total: number;
  readonly low: Point;
  readonly high: Point;
}

export type Point = readonly [number, number, number];

interface Field {
  readonly name: string;
  readonly size: number;
  readonly type: string;
  readonly count: number;
  /** Bytes from the beginning of a point. */
  readonly offset: number;
  /** Numbers from the beginning of a point. */
  readonly column: number;
}

interface Header {
  readonly fields: readonly Field[];
  readonly stride: number;
  readonly columns: number;
  readonly points: number;
  readonly encoding: string;
  /** Bytes of the header. */
  readonly length: number;
}

const MAX_HEADER = 4096;
const MAX_COLUMNS = 256;
const NEWLINE = 10;

/** Throws a RangeError with a sentence if this is not such a file. */
export function parsePcd(file: Uint8Array): PointCloud {
  const header = parseHeader(file);
  const data = file.subarray(header.length);
  const step = Math.max(1, Math.ceil(header.points / MAX_POINTS));
  const cloud = new CloudBuilder(Math.ceil(header.points / step), findColor(header) !== null);
  if (header.encoding === 'binary') readBinary(data, header, step, cloud);
  else readText(data, header, step, cloud);
  return cloud.finish(header.points);
}

class CloudBuilder {
  #positions: Float32Array;
  #colors: Uint8Array | null;
  #count = 0;
  #low: [number, number, number] = [Infinity, Infinity, Infinity];
  #high: [number, number, number] = [-Infinity, -Infinity, -Infinity];

  constructor(points: number, colored: boolean) {
    this.#positions = new Float32Array(points * 3);
    this.#colors = colored ? new Uint8Array(points * 3) : null;
  }

  /** Points without a position, as sensors report where they see nothing, are left out. */
  add(x: number, y: number, z: number, color: number): void {
    if (!Number.isFinite(x) || !Number.isFinite(y) || !Number.isFinite(z)) return;
    const at = this.#count * 3;
    this.#positions[at] = x;
    this.#positions[at + 1] = y;
    this.#positions[at + 2] = z;
    if (this.#colors !== null) {
      this.#colors[at] = (color >> 16) & 255;
      this.#colors[at + 1] = (color >> 8) & 255;
      this.#colors[at + 2] = color & 255;
    }
    const [low, high] = [this.#low, this.#high];
    if (x < low[0]) low[0] = x;
    if (y < low[1]) low[1] = y;
    if (z < low[2]) low[2] = z;
    if (x > high[0]) high[0] = x;
    if (y > high[1]) high[1] = y;
    if (z > high[2]) high[2] = z;
    this.#count += 1;
  }

  finish(total: number): PointCloud {
    const [count, none] = [this.#count, this.#count === 0];
    return {
      positions: this.#positions.subarray(0, count * 3),
      colors: this.#colors?.subarray(0, count * 3) ?? null,
      count,
      total,
      low: none ? [0, 0, 0] : this.#low,
      high: none ? [0, 0, 0] : this.#high,
    };
  }
}

function parseHeader(file: Uint8Array): Header {
  const lines = new Map<string, string[]>();
  let at = 0;
  while (!lines.has('DATA')) {
    const end = file.subarray(0, MAX_HEADER).indexOf(NEWLINE, at);
    if (end < 0) throw new RangeError('this is not a PCD file: its header has no DATA line');
    const [key = '#', ...values] = new TextDecoder('latin1').decode(file.subarray(at, end)).trim().split(/\s+/);
    lines.set(key, values);
    at = end + 1;
  }
  const fields = parseFields(lines);
  const last = fields.at(-1)!;
  const points = readCount(lines.get('POINTS')?.[0], 'POINTS', 0, Number.MAX_SAFE_INTEGER);
  const [encoding = ''] = lines.get('DATA')!;
  if (encoding !== 'ascii' && encoding !== 'binary')
    throw new RangeError(`the points of the PCD file are ${encoding || 'in no encoding'}: this page reads ascii and binary`);
  const [stride, columns] = [last.offset + last.size * last.count, last.column + last.count];
  const available = file.length - at;
  // A text has at least one digit and a separator for each number.
  const needed = encoding === 'binary' ? points * stride : points * columns * 2 - 1;
  if (needed > available)
    throw new RangeError(`the PCD file is incomplete: ${points} points need ${needed} bytes, but it has ${available}`);
  return { fields, stride, columns, points, encoding, length: at };
}

function parseFields(lines: ReadonlyMap<string, readonly string[]>): Field[] {
  const names = lines.get('FIELDS') ?? [];
  const fields: Field[] = [];
  let [offset, column] = [0, 0];
  for (const [index, name] of names.entries()) {
    const size = readCount(lines.get('SIZE')?.[index], 'SIZE', 1, 8);
    const count = readCount(lines.get('COUNT')?.[index] ?? '1', 'COUNT', 1, MAX_COLUMNS);
    fields.push({ name, size, type: lines.get('TYPE')?.[index] ?? '', count, offset, column });
    offset += size * count;
    column += count;
  }
  if (column > MAX_COLUMNS) throw new RangeError(`the PCD file has more than ${MAX_COLUMNS} values for each point`);
  for (const axis of ['x', 'y', 'z']) {
    const field = fields.find((each) => each.name === axis);
    if (field === undefined) throw new RangeError(`the PCD file has no field ${axis}`);
    if (field.type !== 'F' || (field.size !== 4 && field.size !== 8))
      throw new RangeError(`the field ${axis} of the PCD file is not a float of 4 or 8 bytes`);
  }
  return fields;
}

function readCount(text: string | undefined, key: string, least: number, most: number): number {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : NaN;
  if (!(value >= least && value <= most)) throw new RangeError(`the PCD file has no valid ${key}`);
  return value;
}

function findColor(header: Header): Field | null {
  return header.fields.find((each) => (each.name === 'rgb' || each.name === 'rgba') && each.size === 4) ?? null;
}

function readBinary(data: Uint8Array, header: Header, step: number, cloud: CloudBuilder): void {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const [x, y, z] = ['x', 'y', 'z'].map((axis) => header.fields.find((each) => each.name === axis)!);
  const color = findColor(header);
  const read = (field: Field, at: number) =>
    field.size === 8 ? view.getFloat64(at + field.offset, true) : view.getFloat32(at + field.offset, true);
  for (let index = 0; index < header.points; index += step) {
    const at = index * header.stride;
    const packed = color === null ? 0 : view.getUint32(at + color.offset, true);
    cloud.add(read(x!, at), read(y!, at), read(z!, at), packed);
  }
}

function readText(data: Uint8Array, header: Header, step: number, cloud: CloudBuilder): void {
  const [x, y, z] = ['x', 'y', 'z'].map((axis) => header.fields.find((each) => each.name === axis)!.column);
  const color = findColor(header);
  const bits = new DataView(new ArrayBuffer(4));
  const values = new Float64Array(header.columns);
  const lines = new NumberLines(data);
  for (let index = 0; index < header.points; index += 1) {
    const found = lines.next(values);
    if (found === null) throw new RangeError(`the PCD file ends after ${index} of ${header.points} points`);
    if (found < header.columns) throw new RangeError(`point ${index + 1} of the PCD file has ${found} numbers, not ${header.columns}`);
    if (index % step !== 0) continue;
    const packed = color === null ? 0 : unpack(values[color.column]!, color, bits);
    cloud.add(values[x!]!, values[y!]!, values[z!]!, packed);
  }
}

/** A color in a text is an integer, or the float with the same bits. */
function unpack(value: number, color: Field, bits: DataView): number {
  if (color.type !== 'F') return value;
  bits.setFloat32(0, value);
  return bits.getUint32(0);
}

/** Lines of numbers, read without a string for each of them: a cloud has millions. */
class NumberLines {
  #at = 0;

  constructor(readonly data: Uint8Array) {}

  /** Fills the values with the next line that is not empty. Returns how many it has, or null at the end. */
  next(values: Float64Array): number | null {
    const data = this.data;
    let found = 0;
    while (this.#at < data.length) {
      const byte = data[this.#at]!;
      if (byte === NEWLINE) {
        this.#at += 1;
        if (found > 0) return found;
      } else if (byte <= 32) {
        this.#at += 1;
      } else {
        const value = this.#number();
        if (found < values.length) values[found] = value;
        found += 1;
      }
    }
    return found > 0 ? found : null;
  }

  /** A word that is no number is NaN, as `nan` is. */
  #number(): number {
    const data = this.data;
    const begin = this.#at;
    let at = begin;
    let digits = 0;
    let places = 0;
    let mantissa = 0;
    const negative = data[at] === MINUS;
    if (negative || data[at] === PLUS) at += 1;
    for (; isDigit(data[at]); at += 1, digits += 1) mantissa = mantissa * 10 + data[at]! - ZERO;
    if (data[at] === DOT) for (at += 1; isDigit(data[at]); at += 1, digits += 1, places += 1) mantissa = mantissa * 10 + data[at]! - ZERO;
    const isPlain = digits > 0 && digits <= MAX_PLAIN_DIGITS && isSpace(data[at]);
    while (!isSpace(data[at])) at += 1;
    this.#at = at;
    if (isPlain) return (negative ? -mantissa : mantissa) / SCALES[places]!;
    if (at - begin > MAX_WORD) return NaN;
    return Number(String.fromCharCode(...data.subarray(begin, at)));
  }
}

const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
/** So many digits are exact in a double. */
const MAX_PLAIN_DIGITS = 15;
const SCALES = Array.from({ length: MAX_PLAIN_DIGITS + 1 }, (_, places) => 10 ** places);
const MAX_WORD = 40;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 48 && byte <= 57;
}

function isSpace(byte: number | undefined): boolean {
  return byte === undefined || byte <= 32;
}

/** Images that browsers cannot decode: depth maps, and pixels as they are. */

export const DEPTH = 'image/vnd.viam.dep';
export const RGBA = 'image/vnd.viam.rgba';

const DEPTH_HEADER = 24;
const RGBA_HEADER = 12;
const MAX_PIXELS = 1 << 26;

export interface DepthMap {
  readonly width: number;
  readonly height: number;
  /** Row by row, in the unit of the camera, which is millimeters by convention; 0: not measured. */
  readonly values: Uint16Array;
}

export interface Range {
  readonly low: number;
  readonly high: number;
}

/** Reads `DEPTHMAP`, width and height of 64 bits each, and values of 16 bits, all big-endian. */
export function readDepth(data: Uint8Array): DepthMap {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < DEPTH_HEADER || readText(data, 8) !== 'DEPTHMAP') throw new Error('the depth map has no header');
  const [width, height] = [Number(view.getBigUint64(8)), Number(view.getBigUint64(16))];
  checkSize(width, height, data.length - DEPTH_HEADER, 2);
  const values = new Uint16Array(width * height);
  for (let index = 0; index < values.length; index += 1) values[index] = view.getUint16(DEPTH_HEADER + 2 * index);
  return { width, height, values };
}

/** The least and the greatest measured value; null if nothing is measured. */
export function findRange(values: Uint16Array): Range | null {
  let [low, high] = [Infinity, 0];
  for (const value of values) {
    if (value === 0) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high === 0 ? null : { low, high };
}

/** Near is red, far is blue, and what is not measured is black. */
export function colorDepth(map: DepthMap, range: Range | null): ImageData {
  const image = new ImageData(map.width, map.height);
  const pixels = new Uint32Array(image.data.buffer);
  const span = range ? Math.max(1, range.high - range.low) : 1;
  for (let index = 0; index < pixels.length; index += 1) {
    const value = map.values[index]!;
    pixels[index] = value === 0 || !range ? BLACK : PALETTE[Math.round((1 - (value - range.low) / span) * 255)]!;
  }
  return image;
}

/** Reads `RGBA`, width and height of 32 bits each, big-endian, and four bytes for each pixel. */
export function readRgba(data: Uint8Array): ImageData {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < RGBA_HEADER || readText(data, 4) !== 'RGBA') throw new Error('the image has no header');
  const [width, height] = [view.getUint32(4), view.getUint32(8)];
  checkSize(width, height, data.length - RGBA_HEADER, 4);
  return new ImageData(new Uint8ClampedArray(data.slice(RGBA_HEADER)), width, height);
}

/**
 * The color of a part of the range, from 0 (far) to 1 (near): the polynomials of the color map Turbo,
 * without its dark ends, so that what is far differs from what is not measured.
 */
export function turbo(part: number): readonly [number, number, number] {
  const x = 0.08 + 0.87 * Math.min(1, Math.max(0, part));
  const powers = [1, x, x ** 2, x ** 3, x ** 4, x ** 5];
  const channel = (factors: readonly number[]) =>
    Math.round(
      255 *
        Math.min(
          1,
          Math.max(
            0,
            factors.reduce((sum, factor, index) => sum + factor * powers[index]!, 0),
          ),
        ),
    );
  return [
    channel([0.13572138, 4.6153926, -42.66032258, 132.13108234, -152.94239396, 59.28637943]),
    channel([0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604]),
    channel([0.1066733, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973]),
  ];
}

const BLACK = 0xff000000;
/** Pixels as they are in memory, where red comes first. */
const PALETTE = Uint32Array.from({ length: 256 }, (_, index) => {
  const [red, green, blue] = turbo(index / 255);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
});

function readText(data: Uint8Array, length: number): string {
  return String.fromCharCode(...data.subarray(0, length));
}

function checkSize(width: number, height: number, bytes: number, bytesPerPixel: number): void {
  if (width === 0 || height === 0 || width * height > MAX_PIXELS) throw new Error(`an image of ${width}x${height} pixels cannot be shown`);
  if (width * height * bytesPerPixel !== bytes) throw new Error(`the image declares ${width}x${height} pixels, but has ${bytes} bytes`);
}

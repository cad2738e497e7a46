/** Sound as samples and as WAV files. All samples are little-endian, interleaved. */

export type PcmCodec = 'pcm16' | 'pcm32' | 'pcm32_float';

export interface Sound {
  readonly codec: PcmCodec;
  readonly sampleRate: number;
  readonly channels: number;
  readonly data: Uint8Array;
}

const HEADER = 44;
const [INTEGER, FLOAT, EXTENSIBLE] = [1, 3, 0xfffe] as const;

export function isPcm(codec: string): codec is PcmCodec {
  return codec === 'pcm16' || codec === 'pcm32' || codec === 'pcm32_float';
}

export function bytesPerSample(codec: PcmCodec): number {
  return codec === 'pcm16' ? 2 : 4;
}

export function encodeWav({ codec, sampleRate, channels, data }: Sound): Uint8Array {
  const file = new Uint8Array(HEADER + data.length);
  const view = new DataView(file.buffer);
  const frame = channels * bytesPerSample(codec);
  writeText(file, 0, 'RIFF');
  view.setUint32(4, 36 + data.length, true);
  writeText(file, 8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, codec === 'pcm32_float' ? FLOAT : INTEGER, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * frame, true);
  view.setUint16(32, frame, true);
  view.setUint16(34, 8 * bytesPerSample(codec), true);
  writeText(file, 36, 'data');
  view.setUint32(40, data.length, true);
  file.set(data, HEADER);
  return file;
}

/** Reads a WAV file of 16, 24 or 32 bits; 24 bits become 16. */
export function decodeWav(file: Uint8Array): Sound {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 12 || readText(file, 0, 4) !== 'RIFF' || readText(file, 8, 4) !== 'WAVE') throw new Error('this is not a WAV file');
  const chunks = readChunks(file, view);
  const format = chunks.get('fmt ');
  const data = chunks.get('data');
  if (format === undefined || format.length < 16 || data === undefined) throw new Error('the WAV file is incomplete');
  const head = new DataView(format.buffer, format.byteOffset, format.byteLength);
  const [tag, channels, sampleRate, bits] = [
    head.getUint16(0, true),
    head.getUint16(2, true),
    head.getUint32(4, true),
    head.getUint16(14, true),
  ];
  const kind = tag === EXTENSIBLE && format.length >= 26 ? head.getUint16(24, true) : tag;
  const codec = findCodec(kind, bits);
  if (codec === null || channels === 0 || sampleRate === 0)
    throw new Error(`the WAV file has ${bits} bits of format ${kind}: use PCM of 16, 24 or 32 bits`);
  const samples = bits === 24 ? narrow(data) : data;
  const frame = channels * bytesPerSample(codec);
  return { codec, channels, sampleRate, data: samples.slice(0, samples.length - (samples.length % frame)) };
}

function findCodec(kind: number, bits: number): PcmCodec | null {
  if (kind === INTEGER && (bits === 16 || bits === 24)) return 'pcm16';
  if (kind === INTEGER && bits === 32) return 'pcm32';
  return kind === FLOAT && bits === 32 ? 'pcm32_float' : null;
}

function readChunks(file: Uint8Array, view: DataView): Map<string, Uint8Array> {
  const chunks = new Map<string, Uint8Array>();
  for (let at = 12; at + 8 <= file.length;) {
    const size = view.getUint32(at + 4, true);
    // A recorder that was interrupted declares more than it wrote.
    chunks.set(readText(file, at, 4), file.subarray(at + 8, Math.min(file.length, at + 8 + size)));
    at += 8 + size + (size % 2);
  }
  return chunks;
}

function narrow(data: Uint8Array): Uint8Array {
  const count = Math.floor(data.length / 3);
  const result = new Uint8Array(2 * count);
  for (let index = 0; index < count; index += 1) {
    result[2 * index] = data[3 * index + 1]!;
    result[2 * index + 1] = data[3 * index + 2]!;
  }
  return result;
}

/** The loudest and the average sample, from 0 to 1. */
export function measureLevel(codec: PcmCodec, data: Uint8Array): { peak: number; average: number } {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const size = bytesPerSample(codec);
  const count = Math.floor(data.length / size);
  let [peak, sum] = [0, 0];
  for (let index = 0; index < count; index += 1) {
    const value = Math.abs(readSample(view, index * size, codec));
    if (!(value <= 1)) continue;
    peak = Math.max(peak, value);
    sum += value * value;
  }
  return { peak, average: count ? Math.sqrt(sum / count) : 0 };
}

function readSample(view: DataView, at: number, codec: PcmCodec): number {
  if (codec === 'pcm16') return view.getInt16(at, true) / 0x8000;
  return codec === 'pcm32' ? view.getInt32(at, true) / 0x80000000 : view.getFloat32(at, true);
}

/** A tone that fades in and out, so that it does not click. */
export function makeTone(frequency: number, seconds: number, sampleRate: number, volume: number): Sound {
  const count = Math.round(seconds * sampleRate);
  const fade = Math.min(count / 2, 0.01 * sampleRate);
  const data = new Uint8Array(2 * count);
  const view = new DataView(data.buffer);
  for (let index = 0; index < count; index += 1) {
    const envelope = Math.min(1, index / fade, (count - 1 - index) / fade);
    view.setInt16(2 * index, Math.round(32767 * volume * envelope * Math.sin((2 * Math.PI * frequency * index) / sampleRate)), true);
  }
  return { codec: 'pcm16', sampleRate, channels: 1, data };
}

export function decibels(level: number): number {
  return 20 * Math.log10(Math.max(level, 1e-5));
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

function writeText(file: Uint8Array, at: number, text: string): void {
  file.set(new TextEncoder().encode(text), at);
}

function readText(file: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...file.subarray(at, at + length));
}

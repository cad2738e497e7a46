import { describe, expect, it } from 'vitest';
import { decibels, decodeWav, encodeWav, makeTone, measureLevel } from './wav';

describe('WAV files', () => {
  it('come back as they were', () => {
    for (const codec of ['pcm16', 'pcm32', 'pcm32_float'] as const) {
      const sound = { codec, sampleRate: 8000, channels: 2, data: Uint8Array.from({ length: 16 }, (_, index) => index) };
      expect(decodeWav(encodeWav(sound))).toEqual(sound);
    }
  });
  it('may declare more than they have, and have other chunks', () => {
    const file = encodeWav({ codec: 'pcm16', sampleRate: 8000, channels: 1, data: Uint8Array.of(1, 2, 3, 4) });
    new DataView(file.buffer).setUint32(40, 4000, true);
    expect([...decodeWav(file).data]).toEqual([1, 2, 3, 4]);
  });
  it('are refused if they are something else', () => {
    expect(() => decodeWav(new Uint8Array(100))).toThrow('not a WAV file');
    const file = encodeWav({ codec: 'pcm16', sampleRate: 8000, channels: 1, data: new Uint8Array(4) });
    file[34] = 8;
    expect(() => decodeWav(file)).toThrow('8 bits');
  });
});

describe('makeTone', () => {
  const tone = makeTone(440, 0.5, 8000, 0.5);
  it('lasts as long as asked, at half the volume', () => {
    expect(tone.data.length).toBe(2 * 4000);
    expect(measureLevel('pcm16', tone.data).peak).toBeCloseTo(0.5, 1);
  });
  it('begins and ends silently', () => {
    expect([...tone.data.slice(0, 2), ...tone.data.slice(-2)]).toEqual([0, 0, 0, 0]);
  });
});

it('measures silence', () => {
  expect(measureLevel('pcm16', new Uint8Array(8))).toEqual({ peak: 0, average: 0 });
  expect(decibels(0)).toBeCloseTo(-100);
  expect(decibels(1)).toBeCloseTo(0);
});

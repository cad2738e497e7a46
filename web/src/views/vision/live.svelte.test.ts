import { describe, expect, it, vi } from 'vitest';
import type { Capture } from './capture';
import { LiveCaptures } from './live.svelte';

function captureOf(takenAt: number): Capture {
  return { picture: null, candidates: [], classes: [], objects: [], minimums: null, steps: [], took: 1, takenAt };
}

describe('live captures', () => {
  it('do not count a frame again that is captured again', async () => {
    const captures = new LiveCaptures();
    const take = vi.fn(() => Promise.resolve(captureOf(1)));
    const stop = captures.start(take, 'live');
    await vi.waitFor(() => expect(take.mock.calls.length).toBeGreaterThan(3));
    expect(captures.rate).toBe(0);
    stop();
  });

  it('count different frames', async () => {
    const captures = new LiveCaptures();
    let number = 0;
    const take = () => new Promise<Capture>((resolve) => setTimeout(() => resolve(captureOf(++number)), 10));
    const stop = captures.start(take, 'live');
    await vi.waitFor(() => expect(number).toBeGreaterThan(5));
    expect(captures.rate).toBeGreaterThan(1);
    expect(captures.rate).toBeLessThanOrEqual(101);
    stop();
  });
});

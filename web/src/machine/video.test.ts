import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Videos, type Streams } from './video';

type Listen = (event: unknown) => void;

/** A machine that sends the video of cameras, or accepts them and sends none. */
class FakeStreams implements Streams {
  readonly sent = new Set<string>();
  isSilent = false;
  isRefusing = false;
  #listeners = new Set<Listen>();

  async add(camera: string): Promise<void> {
    if (this.isRefusing) throw new Error('no such camera');
    if (this.sent.has(camera)) throw new Error('it is sent already');
    this.sent.add(camera);
    if (!this.isSilent) for (const listen of this.#listeners) listen({ streams: [{ id: camera }] });
  }

  async remove(camera: string): Promise<void> {
    this.sent.delete(camera);
  }

  on(_: 'track', listen: Listen): void {
    this.#listeners.add(listen);
  }

  off(_: 'track', listen: Listen): void {
    this.#listeners.delete(listen);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a video is sent once to all who watch, until the last one has left', async () => {
  const streams = new FakeStreams();
  const videos = new Videos(streams);
  const [one, other] = [videos.watch('belt'), videos.watch('belt')];
  expect(await one.stream).toBe(await other.stream);
  one.close();
  await vi.advanceTimersByTimeAsync(5000);
  expect(streams.sent).toContain('belt');
  other.close();
  await vi.advanceTimersByTimeAsync(5000);
  expect(streams.sent).not.toContain('belt');
});

test('a camera whose video never arrives is removed, and can be tried again', async () => {
  const streams = new FakeStreams();
  const videos = new Videos(streams);
  streams.isSilent = true;
  const watch = videos.watch('belt');
  const failure = expect(watch.stream).rejects.toThrow('no video in time');
  await vi.advanceTimersByTimeAsync(8000);
  await failure;
  expect(streams.sent).not.toContain('belt');

  streams.isSilent = false;
  const again = videos.watch('belt');
  watch.close();
  await vi.advanceTimersByTimeAsync(5000);
  expect(await again.stream).toEqual({ id: 'belt' });
  expect(streams.sent).toContain('belt');
});

test('a camera that was refused is asked for again by the next viewer at once', async () => {
  const streams = new FakeStreams();
  const videos = new Videos(streams);
  streams.isRefusing = true;
  await expect(videos.watch('belt').stream).rejects.toThrow('no such camera');
  streams.isRefusing = false;
  expect(await videos.watch('belt').stream).toEqual({ id: 'belt' });
});

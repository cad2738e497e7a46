import { describe, expect, it, vi } from 'vitest';
import { Motion } from './motion.svelte';

/** A call that the test answers. */
function pending() {
  let answer = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => ([answer, fail] = [resolve, reject]));
  return { act: () => promise, answer, fail };
}

const settle = () => new Promise((wake) => setTimeout(wake));

describe('Motion', () => {
  it('does not show why a command failed that a stop interrupted', async () => {
    const motion = new Motion(async () => {});
    const move = pending();
    const moved = motion.command(move.act);
    const stopped = motion.stop();
    move.fail(new Error('interrupted'));
    await stopped;
    expect(await moved).toBe(false);
    expect(motion.error).toBe('');
    expect(motion.busy).toBe(false);
  });

  it('shows why the newest command failed', async () => {
    const motion = new Motion(async () => {});
    expect(await motion.command(() => Promise.reject(new Error('too far')))).toBe(false);
    expect(motion.error).toBe('too far');
  });

  it('stops again after a command that was answered after the stop', async () => {
    const halt = vi.fn(async () => {});
    const motion = new Motion(halt);
    const start = pending();
    void motion.command(start.act);
    const stopped = motion.stop();
    await settle();
    expect(halt).toHaveBeenCalledTimes(1);
    start.answer();
    await stopped;
    expect(halt).toHaveBeenCalledTimes(2);
  });

  it('does not stop again what was started again', async () => {
    const halt = vi.fn(async () => {});
    const motion = new Motion(halt);
    const [first, second] = [pending(), pending()];
    void motion.command(first.act);
    const stopped = motion.stop();
    void motion.command(second.act);
    first.answer();
    await stopped;
    expect(halt).toHaveBeenCalledTimes(1);
  });

  it('leaves out commands that a newer one of a slider replaced', async () => {
    const motion = new Motion(async () => {});
    const [first, done] = [pending(), [] as number[]];
    motion.follow(first.act);
    for (const each of [1, 2, 3]) motion.follow(async () => void done.push(each));
    first.answer();
    await settle();
    expect(done).toEqual([3]);
  });

  it('gives no command of a slider after a stop', async () => {
    const motion = new Motion(async () => {});
    const [first, late] = [pending(), vi.fn(async () => {})];
    motion.follow(first.act);
    motion.follow(late);
    const stopped = motion.stop();
    first.answer();
    await stopped;
    expect(late).not.toHaveBeenCalled();
  });

  it('repeats a step until it is stopped', async () => {
    const motion = new Motion(async () => {});
    let steps = 0;
    const repeated = motion.repeat(async () => (++steps === 3 ? (await motion.stop(), true) : true));
    expect(motion.isRepeating).toBe(true);
    await repeated;
    expect(steps).toBe(3);
    expect(motion.isRepeating).toBe(false);
  });

  it('ends repeating when a step fails', async () => {
    const motion = new Motion(async () => {});
    await motion.repeat(() => Promise.reject(new Error('at its limit')));
    expect(motion.error).toBe('at its limit');
  });
});

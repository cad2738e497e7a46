import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Session, type SessionCalls, type StartedSession } from './session';

const WINDOW = 2000;

class Expired extends Error {
  readonly rawMessage = 'SESSION_EXPIRED';
}

/** A machine that expires sessions, and may not answer. */
class FakeMachine implements SessionCalls {
  readonly resumed: string[] = [];
  readonly heartbeats: string[] = [];
  readonly ended: string[] = [];
  isSilent = false;
  #count = 0;
  #alive = new Set<string>();

  async start(resume: string): Promise<StartedSession> {
    if (this.isSilent) return new Promise(() => {});
    this.resumed.push(resume);
    const id = this.#alive.has(resume) ? resume : `session ${++this.#count}`;
    this.#alive.add(id);
    return { id, window: WINDOW };
  }

  async sendHeartbeat(id: string): Promise<void> {
    this.heartbeats.push(id);
    if (this.isSilent) return new Promise(() => {});
    if (!this.#alive.has(id)) throw new Expired();
  }

  end(id: string): void {
    this.ended.push(id);
    this.#alive.delete(id);
  }

  expire(): void {
    this.#alive.clear();
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('heartbeats come five times in the window', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  await session.resume();
  await vi.advanceTimersByTimeAsync(WINDOW);
  expect(machine.heartbeats).toEqual(Array(5).fill('session 1'));
  expect(await session.open()).toBe('session 1');
  expect(machine.resumed).toEqual(['']);
});

test('another session follows one that has expired, and another after that', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  await session.resume();
  for (const next of ['session 2', 'session 3']) {
    machine.expire();
    await vi.advanceTimersByTimeAsync(WINDOW / 5);
    expect(session.id).toBe(next);
  }
});

test('a session that may have expired is asked for before it is used', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  await session.resume();
  machine.isSilent = true;
  await vi.advanceTimersByTimeAsync(WINDOW);
  machine.isSilent = false;
  machine.expire();
  expect(await session.open()).toBe('session 2');
  expect(machine.resumed).toEqual(['', 'session 1']);
});

test('few heartbeats wait for a machine that does not answer', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  await session.resume();
  machine.isSilent = true;
  await vi.advanceTimersByTimeAsync(WINDOW * 0.9);
  expect(machine.heartbeats.length).toBe(3);
});

test('a hidden page ends its session, sends no heartbeats and opens no other', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  await session.resume();
  session.pause();
  session.pause();
  expect(machine.ended).toEqual(['session 1']);
  await vi.advanceTimersByTimeAsync(10 * WINDOW);
  expect(machine.heartbeats).toEqual([]);
  await expect(session.open()).rejects.toThrow('the page is hidden');
  await session.resume();
  expect(session.id).toBe('session 2');
});

test('a session that was opened too late is ended', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  const opened = session.open();
  session.pause();
  await expect(opened).rejects.toThrow('the page is hidden');
  expect(machine.ended).toEqual(['session 1']);
});

test('a machine that does not answer is asked again', async () => {
  const machine = new FakeMachine();
  const session = new Session(machine);
  machine.isSilent = true;
  void session.resume();
  await vi.advanceTimersByTimeAsync(3500);
  machine.isSilent = false;
  await vi.advanceTimersByTimeAsync(3000);
  expect(session.id).toBe('session 1');
});

/** Sessions: the machine stops what this page moves when it hears nothing from the page. */

import { withDeadline } from '../lib/deadline';

/** What a session needs of its connection. */
export interface SessionCalls {
  /** Starts a session, or goes on with this one unless it has expired. */
  start(resume: string): Promise<StartedSession>;
  sendHeartbeat(id: string): Promise<unknown>;
  /** Ends a session at once. Works also while the page is being closed. */
  end(id: string): void;
}

export interface StartedSession {
  readonly id: string;
  /** Milliseconds without a heartbeat after which the session expires. */
  readonly window: number;
}

const HEARTBEATS_IN_WINDOW = 5;
/** Heartbeats that may wait for their answers: the next one may take another connection. */
const MAX_HEARTBEATS = 3;
const START_TIMEOUT = 3000;

/**
 * A session over one connection, which the page keeps alive while it is shown.
 *
 * Heartbeats come from the main thread, not from a worker: a page that hangs cannot stop anything, so
 * what it moves must stop.
 */
export class Session {
  readonly #calls: SessionCalls;
  #started: StartedSession | null = null;
  #starting: Promise<StartedSession> | null = null;
  /** When a heartbeat that was answered was sent, in milliseconds of `performance.now()`. */
  #heardAt = 0;
  #waiting = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isPaused = false;

  constructor(calls: SessionCalls) {
    this.#calls = calls;
  }

  get id(): string {
    return this.#started?.id ?? '';
  }

  /** Returns a session that the machine knows, as far as this page can tell. */
  async open(): Promise<string> {
    if (this.#isPaused) throw new Error('the page is hidden, so it moves nothing');
    const started = this.#started;
    if (started !== null && performance.now() - this.#heardAt < started.window / 2) return started.id;
    return (await this.#start()).id;
  }

  /** Forgets a session of which the machine says that it has expired. */
  forget(id: string): void {
    if (this.id === id) this.#started = null;
  }

  /** Ends the session, and with it everything that it moves. */
  pause(): void {
    this.#isPaused = true;
    clearTimeout(this.#timer);
    if (this.#started !== null) this.#calls.end(this.#started.id);
    this.#started = null;
  }

  /** Opens a session again. */
  async resume(): Promise<void> {
    this.#isPaused = false;
    // The next heartbeat tries again.
    await this.open().catch(() => this.#schedule(START_TIMEOUT));
  }

  #start(): Promise<StartedSession> {
    this.#starting ??= this.#startOnce().finally(() => (this.#starting = null));
    return this.#starting;
  }

  async #startOnce(): Promise<StartedSession> {
    const sentAt = performance.now();
    const started = await withDeadline(this.#calls.start(this.id), START_TIMEOUT);
    if (this.#isPaused) {
      this.#calls.end(started.id);
      throw new Error('the page is hidden, so it moves nothing');
    }
    this.#started = started;
    this.#heardAt = sentAt;
    this.#schedule(started.window / HEARTBEATS_IN_WINDOW);
    return started;
  }

  #schedule(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#isPaused) this.#timer = setTimeout(() => void this.#beat(), milliseconds);
  }

  async #beat(): Promise<void> {
    const started = this.#started;
    if (started === null) {
      await this.resume();
      return;
    }
    this.#schedule(started.window / HEARTBEATS_IN_WINDOW);
    if (this.#waiting >= MAX_HEARTBEATS) return;
    this.#waiting += 1;
    const sentAt = performance.now();
    try {
      await withDeadline(this.#calls.sendHeartbeat(started.id), started.window);
      this.#heardAt = Math.max(this.#heardAt, sentAt);
    } catch (error) {
      if (!isExpired(error)) return;
      this.forget(started.id);
      if (!this.#isPaused) await this.resume();
    } finally {
      this.#waiting -= 1;
    }
  }
}

/** Whether the machine says that a session has expired. */
export function isExpired(error: unknown): boolean {
  return error instanceof Error && (error as { rawMessage?: unknown }).rawMessage === 'SESSION_EXPIRED';
}

import { withDeadline } from '../../lib/deadline';
import { describeError } from '../../machine/errors';
import type { Capture } from './capture';

export type Mode = 'once' | 'interval' | 'live';

const INTERVAL = 1000;
const RETRY = 1000;
/** Milliseconds; a large model on a small board is slow. */
const TIMEOUT = 60_000;
/** Milliseconds until a camera that had no new picture is asked again. */
const SAME_PICTURE_PAUSE = 20;
/** The rate counts the last frames: at most so many, and not older than so many milliseconds. */
const RATE_FRAMES = 12;
const RATE_SPAN = 10_000;

/** Captures on demand, every second, or one after the other. */
export class LiveCaptures {
  current = $state.raw<Capture | null>(null);
  /** When the capture arrived, in milliseconds of `performance.now()`. */
  at = $state(0);
  error = $state('');
  busy = $state(false);
  /** Different frames per second; 0 unless live. A frame that is captured twice counts once. */
  rate = $state(0);

  /** Of the current capture. Not part of the state: an effect that starts captures must not follow them. */
  #takenAt: number | null = null;
  /** When the last frames arrived, in milliseconds of `performance.now()`. */
  #frames: readonly number[] = [];
  #wake: (() => void) | null = null;
  #run = 0;

  /** Captures in this mode until the returned function is called. */
  start(take: () => Promise<Capture>, mode: Mode): () => void {
    const run = ++this.#run;
    const isOver = () => this.#run !== run;
    this.rate = 0;
    this.#frames = [];
    void this.#loop(take, mode, isOver);
    return () => {
      if (!isOver()) this.#run += 1;
      this.#wake?.();
    };
  }

  /** Forgets what was captured, because it is of another camera or service. */
  clear(): void {
    this.current?.picture?.close();
    this.current = null;
    this.at = 0;
    this.error = '';
  }

  /** Captures now. */
  refresh(): void {
    this.#wake?.();
  }

  async #loop(take: () => Promise<Capture>, mode: Mode, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const before = this.#takenAt;
      const failed = !(await this.#take(take, isOver, mode));
      if (isOver()) return;
      if (failed && mode !== 'once') await this.#pause(RETRY);
      else if (mode === 'once') await this.#pause(Infinity);
      else if (mode === 'interval') await this.#pause(INTERVAL);
      else if (before !== null && before === this.#takenAt) await this.#pause(SAME_PICTURE_PAUSE);
      while (document.hidden && !isOver()) await this.#pause(RETRY);
    }
  }

  async #take(take: () => Promise<Capture>, isOver: () => boolean, mode: Mode): Promise<boolean> {
    this.busy = true;
    try {
      const capture = await withDeadline(take(), TIMEOUT);
      if (isOver()) {
        capture.picture?.close();
        return true;
      }
      const now = performance.now();
      if (mode === 'live') this.#countFrame(capture.takenAt, now);
      this.current?.picture?.close();
      this.current = capture;
      this.#takenAt = capture.takenAt;
      this.at = now;
      this.error = '';
      return true;
    } catch (error) {
      if (!isOver()) this.error = describeError(error);
      return false;
    } finally {
      this.busy = false;
    }
  }

  #countFrame(takenAt: number | null, now: number): void {
    const isNew = takenAt === null || takenAt !== this.#takenAt || this.#frames.length === 0;
    const frames = isNew ? [...this.#frames, now] : this.#frames;
    this.#frames = frames.filter((each) => now - each < RATE_SPAN).slice(-RATE_FRAMES);
    const span = now - (this.#frames[0] ?? now);
    this.rate = span > 0 ? ((this.#frames.length - 1) * 1000) / span : 0;
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = milliseconds === Infinity ? undefined : setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

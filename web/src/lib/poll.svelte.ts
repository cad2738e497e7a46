import { describeError } from '../machine/errors';
import { withDeadline } from './deadline';

const ANSWER_TIMEOUT = 20_000;

/**
 * A value that is asked for again and again while its component is shown.
 *
 * The next request follows the answer to the last one, so a slow machine is asked less often.
 */
export class Poll<T> {
  value = $state.raw<T | null>(null);
  error = $state('');
  /** When the value was received, in milliseconds of `performance.now()`; 0: never. */
  at = $state(0);

  #wake: (() => void) | null = null;

  /** Call it while a component is initialized. `ask` may read state: a change asks at once. */
  constructor(ask: () => Promise<T>, interval: () => number) {
    $effect(() => {
      let stopped = false;
      const first = ask();
      void this.#run(first, ask, interval, () => stopped);
      return () => {
        stopped = true;
        this.#wake?.();
      };
    });
  }

  refresh(): void {
    this.#wake?.();
  }

  async #run(first: Promise<T>, ask: () => Promise<T>, interval: () => number, isStopped: () => boolean) {
    for (let answer: Promise<T> | null = first; !isStopped(); answer = null) {
      try {
        const value = await withDeadline(answer ?? ask(), ANSWER_TIMEOUT);
        if (isStopped()) return;
        this.value = value;
        this.error = '';
        this.at = performance.now();
      } catch (error) {
        if (isStopped()) return;
        this.error = describeError(error);
      }
      do await this.#pause(interval());
      while (document.hidden && !isStopped());
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

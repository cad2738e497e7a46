/** How fast counters of the status grow. */

/** A counter, and when it was read, in seconds. */
export interface Count {
  readonly seconds: number;
  readonly count: number;
}

/** Averages over some seconds, because counters of processor time advance in steps of 10 ms. */
export class UseRate {
  #counts: Count[] = [];

  constructor(readonly window = 6) {}

  /** Returns the growth in a second, or null if it is not known yet. A counter that starts again starts this again. */
  add(seconds: number, count: number): number | null {
    const last = this.#counts.at(-1);
    if (last && (seconds < last.seconds || count < last.count)) this.#counts = [];
    if (!last || seconds !== last.seconds) this.#counts.push({ seconds, count });
    while (this.#counts.length > 2 && this.#counts[1]!.seconds <= seconds - this.window) this.#counts.shift();
    const first = this.#counts[0]!;
    return seconds > first.seconds ? (count - first.count) / (seconds - first.seconds) : null;
  }
}

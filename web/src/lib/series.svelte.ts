import { untrack } from 'svelte';

export interface Point {
  /** Milliseconds of `performance.now()`. */
  readonly time: number;
  readonly value: number;
}

const MAX_POINTS = 1200;

/** The values of the last minutes, for a plot. */
export class Series {
  points: Point[] = [];
  /** Changes with every point, for the one who draws them. */
  version = $state(0);

  constructor(
    readonly name: string,
    readonly span = 600_000,
  ) {}

  add(value: number, time = performance.now()): void {
    this.points.push({ time, value });
    const oldest = time - this.span;
    while (this.points.length > MAX_POINTS || (this.points[0]?.time ?? oldest) < oldest) this.points.shift();
    this.version = untrack(() => this.version) + 1;
  }
}

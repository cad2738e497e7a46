/** The axes of plots that show the same time. */

const SPANS = [1, 2, 5, 10].map((minutes) => minutes * 60_000);

/** The milliseconds to show: the fewest that hold everything since the first point. */
export function chooseSpan(begin: number, end: number): number {
  return SPANS.find((each) => each >= end - begin) ?? SPANS.at(-1)!;
}

/** A round number that is at least the value: 1, 2 or 5 with zeros. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((each) => each * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}

interface Timed {
  readonly time: number;
}

/** The point nearest to a time, of points in the order of time. */
export function findNearest<T extends Timed>(points: readonly T[], time: number): T | undefined {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle]!.time < time) low = middle + 1;
    else high = middle;
  }
  const [before, after] = [points[low - 1], points[low]];
  if (before === undefined || after === undefined) return before ?? after;
  return time - before.time <= after.time - time ? before : after;
}

/** The path of a line through points; a value that is not finite leaves a gap. */
export function drawLine(
  points: readonly { readonly time: number; readonly value: number }[],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  let isDown = false;
  const parts = points.map(({ time, value }) => {
    if (!Number.isFinite(value)) {
      isDown = false;
      return '';
    }
    const command = isDown ? 'L' : 'M';
    isDown = true;
    return `${command}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return parts.join('');
}

/** Milliseconds until the next try: `first` after one failure, doubled after each further one, up to `last`. */
export function backOff(failures: number, first: number, last: number): number {
  return Math.min(last, first * 2 ** Math.max(0, failures - 1));
}

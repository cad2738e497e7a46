/** A time span in the largest unit that says enough: `0.4 s`, `12 s`, `3 min`, `5 h`, `2 d`. */
export function formatDuration(seconds: number): string {
  const span = Math.max(0, seconds);
  if (span < 10) return `${span.toFixed(1)} s`;
  if (span < 90) return `${Math.round(span)} s`;
  if (span < 5400) return `${Math.round(span / 60)} min`;
  if (span < 129600) return `${Math.round(span / 3600)} h`;
  return `${Math.round(span / 86400)} d`;
}

/** A number for reading: as many digits as help, never `1e-7` noise. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? String(value) : value.toExponential(3);
  const size = Math.abs(value);
  if (size >= 1) return String(Number(value.toFixed(size >= 1000 ? 1 : 3)));
  return size >= 1e-4 ? value.toPrecision(3) : value.toExponential(2);
}

/** Times for reading: local, of 24 hours, and with the digits that sort. */

/** `14:03:05.123` */
export function formatClock(milliseconds: number, withFraction = true): string {
  const date = new Date(milliseconds);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => pad(each, 2)).join(':');
  return withFraction ? `${clock}.${pad(date.getMilliseconds(), 3)}` : clock;
}

/** `2026-11-15 14:03:05` */
export function formatTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  const day = [pad(date.getFullYear(), 4), pad(date.getMonth() + 1, 2), pad(date.getDate(), 2)].join('-');
  return `${day} ${formatClock(milliseconds, false)}`;
}

/** Reads what `formatTime` writes, also without seconds; NaN if it is something else. */
export function parseTime(text: string): number {
  const isTime = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text.trim());
  return isTime ? Date.parse(text.trim().replace(' ', 'T')) : NaN;
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0');
}

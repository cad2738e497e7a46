/** Local time for reading: `14:03:05.123`. */
export function formatClock(milliseconds: number, withFraction = true): string {
  const date = new Date(milliseconds);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => pad(each, 2)).join(':');
  return withFraction ? `${clock}.${pad(date.getMilliseconds(), 3)}` : clock;
}

/** Local time as inputs of type `datetime-local` have it. */
export function formatInput(milliseconds: number): string {
  const date = new Date(milliseconds);
  const day = [pad(date.getFullYear(), 4), pad(date.getMonth() + 1, 2), pad(date.getDate(), 2)].join('-');
  return `${day}T${formatClock(milliseconds, false)}`;
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0');
}

/**
 * The reading that stands for a sensor: the one before if the sensor still has it, else the first
 * number by name. Replies have their readings in any order. Empty if no reading is a number.
 */
export function chooseReading(readings: Readonly<Record<string, unknown>>, before: string): string {
  if (typeof readings[before] === 'number') return before;
  const numbers = Object.keys(readings).filter((each) => typeof readings[each] === 'number');
  return numbers.toSorted((a, b) => a.localeCompare(b))[0] ?? '';
}

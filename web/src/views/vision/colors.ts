import { hash } from '../../lib/hash';

const HUES = 36;
/** Of dark and light colors of the same hue, so that labels with similar hues differ. */
const LIGHTNESS = [68, 80] as const;

/** The color of a label, the same in every session. It is bright enough on any picture, with dark text on it. */
export function colorOf(label: string): string {
  const number = hash(label) % (HUES * LIGHTNESS.length);
  const lightness = LIGHTNESS[Math.floor(number / HUES)] ?? LIGHTNESS[0];
  return `hsl(${((number % HUES) * 360) / HUES} 90% ${lightness}%)`;
}

const MAX_LENGTH = 2000;

const COUNT = new Intl.NumberFormat('en');

/** `12,345` */
export function formatCount(number: number): string {
  return COUNT.format(number);
}

/** `1 error`, `2,000 errors` */
export function pluralize(number: number, noun: string): string {
  return `${formatCount(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/**
 * Text of the machine for showing: of bounded length, with what cannot be seen made visible, and
 * without characters that turn the direction of the text around it.
 */
export function shorten(text: string, length = MAX_LENGTH): string {
  const visible = text
    .slice(0, length)
    .replaceAll('\0', '␀')
    .replaceAll(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, '�');
  return text.length > length ? `${visible}… (${text.length} characters)` : visible;
}

/** Which pins, analogs and interrupts of a board somebody looks at. */

export const KINDS = ['pin', 'analog', 'interrupt'] as const;
export type PartKind = (typeof KINDS)[number];
export type BoardParts = Readonly<Record<PartKind, readonly string[]>>;

export const NO_PARTS: BoardParts = { pin: [], analog: [], interrupt: [] };
/** More of a kind would be too many requests for the machine. */
export const MAX_PARTS = 24;
const MAX_NAME = 100;

/** The parts that a board's status names. Boards may add anything to it, or nothing. */
export function partsOfStatus(status: Readonly<Record<string, unknown>>): BoardParts {
  return {
    pin: [...namesIn(status.pins_high), ...namesIn(status.outputs)].slice(0, MAX_PARTS),
    analog: namesIn(status.analogs),
    interrupt: namesIn(status.digital_interrupts),
  };
}

/** Reads what was kept in the browser's storage. */
export function parseParts(text: string | null): BoardParts {
  try {
    const kept = JSON.parse(text ?? '{}') as Record<string, unknown> | null;
    return { pin: namesIn(kept?.pin), analog: namesIn(kept?.analog), interrupt: namesIn(kept?.interrupt) };
  } catch {
    return NO_PARTS;
  }
}

/** Both, without duplicates, in their order. */
export function unite(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])].slice(0, MAX_PARTS);
}

function namesIn(value: unknown): string[] {
  const names = Array.isArray(value) ? value : value && typeof value === 'object' ? Object.keys(value) : [];
  return names.filter((each): each is string => typeof each === 'string' && each.length > 0 && each.length <= MAX_NAME).slice(0, MAX_PARTS);
}

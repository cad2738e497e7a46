/** Which results are shown, and which rule removes the others. */

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A detection, or a classification if it has no box. */
export interface Candidate {
  readonly label: string;
  readonly confidence: number;
  readonly box?: Box;
  /** Why the service removed it; empty if it was reported. */
  readonly rule: string;
}

/** Least confidences. As in the configuration: with labels, only those that are listed are reported. */
export interface Minimums {
  readonly overall: number | null;
  readonly byLabel: Readonly<Record<string, number>>;
}

export interface Selected extends Candidate {
  readonly dropped: boolean;
}

export function hasLabels(minimums: Minimums): boolean {
  return Object.keys(minimums.byLabel).length > 0;
}

/** Why the minimums remove a candidate; empty if they do not. */
export function ruleAgainst(candidate: Candidate, minimums: Minimums): string {
  const { label, confidence } = candidate;
  if (hasLabels(minimums)) {
    const minimum = minimums.byLabel[label];
    if (minimum === undefined) return `${label} is not one of the listed labels`;
    return confidence < minimum ? `${compare(confidence, minimum)} for ${label}` : '';
  }
  const minimum = minimums.overall ?? 0;
  return confidence < minimum ? compare(confidence, minimum) : '';
}

/** `0.31 < 0.40`, with as many digits as show the difference. */
function compare(confidence: number, minimum: number): string {
  let digits = 2;
  while (digits < 6 && confidence.toFixed(digits) === minimum.toFixed(digits)) digits += 1;
  return `${confidence.toFixed(digits)} < ${minimum.toFixed(digits)}`;
}

/**
 * Applies minimums to everything the service found. If they are not the service's own (`changed`), what
 * it removed for its confidence comes back when they allow it.
 */
export function select(candidates: readonly Candidate[], minimums: Minimums, changed: boolean): Selected[] {
  return candidates
    .map((each) => {
      const rule = changed ? ruleAgainst(each, minimums) : each.rule;
      return { ...each, rule, dropped: rule !== '' };
    })
    .sort((a, b) => Number(a.dropped) - Number(b.dropped) || b.confidence - a.confidence);
}

/** Dropped results that are shown at once. */
export const MAX_DROPPED = 20;

/** What is kept, and of what was dropped, the results that are nearest to their minimums. */
export function hideFarDropped(selected: readonly Selected[], minimums: Minimums): Selected[] {
  const distance = ({ label, confidence }: Selected) => {
    const minimum = hasLabels(minimums) ? minimums.byLabel[label] : (minimums.overall ?? 0);
    return minimum === undefined ? Infinity : Math.abs(minimum - confidence);
  };
  const near = selected
    .filter((each) => each.dropped)
    .map((each) => [each, distance(each)] as const)
    .sort(([, a], [, b]) => (a === b ? 0 : a - b))
    .slice(0, MAX_DROPPED);
  const shown = new Set(near.map(([each]) => each));
  return selected.filter((each) => !each.dropped || shown.has(each));
}

/** The attributes of the vision service that have this effect. */
export function toAttributes(minimums: Minimums): Record<string, unknown> {
  const round = (value: number) => Math.round(value * 1000) / 1000;
  if (hasLabels(minimums)) {
    const entries = Object.entries(minimums.byLabel).map(([label, value]) => [label, round(value)]);
    return { label_confidences: Object.fromEntries(entries) };
  }
  return minimums.overall === null ? {} : { default_minimum_confidence: round(minimums.overall) };
}

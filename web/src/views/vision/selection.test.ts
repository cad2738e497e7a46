import { describe, expect, it } from 'vitest';
import { hideFarDropped, MAX_DROPPED, ruleAgainst, select, toAttributes, type Candidate } from './selection';

const gear: Candidate = { label: 'gear', confidence: 0.93, rule: '' };
const bolt: Candidate = { label: 'bolt', confidence: 0.31, rule: '0.31 < 0.40' };

describe('minimums', () => {
  it('remove what is below the minimum of all labels', () => {
    expect(ruleAgainst(bolt, { overall: 0.4, byLabel: {} })).toBe('0.31 < 0.40');
    expect(ruleAgainst(gear, { overall: 0.4, byLabel: {} })).toBe('');
  });

  it('show the difference of numbers that are nearly equal', () => {
    expect(ruleAgainst({ ...bolt, confidence: 0.9499 }, { overall: 0.95, byLabel: {} })).toBe('0.9499 < 0.9500');
  });

  it('remove labels that are not listed once any is', () => {
    const minimums = { overall: 0.4, byLabel: { bolt: 0.3 } };
    expect(ruleAgainst(gear, minimums)).toBe('gear is not one of the listed labels');
    expect(ruleAgainst(bolt, minimums)).toBe('');
  });

  it('bring back what the service removed', () => {
    const changed = select([bolt, gear], { overall: 0.2, byLabel: {} }, true);
    expect(changed.map((each) => [each.label, each.dropped])).toEqual([
      ['gear', false],
      ['bolt', false],
    ]);
  });

  it("leave the service's own verdict alone while nothing is changed", () => {
    const own = select([bolt, gear], { overall: null, byLabel: {} }, false);
    expect(own.map((each) => each.dropped)).toEqual([false, true]);
  });

  it('become attributes of the service', () => {
    expect(toAttributes({ overall: 0.4, byLabel: {} })).toEqual({ default_minimum_confidence: 0.4 });
    expect(toAttributes({ overall: 0.4, byLabel: { bolt: 0.30004 } })).toEqual({ label_confidences: { bolt: 0.3 } });
  });

  it('show the dropped results that are nearest to them', () => {
    const minimums = { overall: 0.4, byLabel: {} };
    const many = Array.from({ length: 39 }, (_, index) => ({ ...bolt, confidence: (index + 1) / 100 }));
    const shown = hideFarDropped(select([...many, gear], minimums, true), minimums);
    expect(shown).toHaveLength(MAX_DROPPED + 1);
    expect(shown[0]).toMatchObject({ label: 'gear', dropped: false });
    expect(Math.min(...shown.map((each) => each.confidence))).toBeCloseTo(0.2);
  });
});

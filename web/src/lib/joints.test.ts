import { describe, expect, it } from 'vitest';
import { nextStep, parseJoints } from './joints';

describe('parseJoints', () => {
  it('reads names, units and limits', () => {
    const joints = [
      { id: 'waist', type: 'revolute', min: -170, max: 170 },
      { id: 'rail', type: 'prismatic', min: 0, max: 500 },
    ];
    expect(parseJoints({ joints })).toEqual([
      { name: 'waist', unit: '°', min: -170, max: 170 },
      { name: 'rail', unit: 'mm', min: 0, max: 500 },
    ]);
  });

  it('takes what is missing as unlimited', () => {
    expect(parseJoints({ joints: [null] })).toEqual([{ name: 'joint 1', unit: '°', min: -Infinity, max: Infinity }]);
    expect(parseJoints('<robot/>')).toEqual([]);
    expect(parseJoints(null)).toEqual([]);
  });
});

describe('nextStep', () => {
  it('stays within the limits', () => {
    expect(nextStep(0, 5, -10, 10)).toBe(5);
    expect(nextStep(8, 5, -10, 10)).toBe(10);
    expect(nextStep(10, 5, -10, 10)).toBeUndefined();
    expect(nextStep(-10, -5, -10, 10)).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { MAX_PARTS, NO_PARTS, parseParts, partsOfStatus, unite } from './board_parts';

describe('partsOfStatus', () => {
  it('reads what a board says about itself', () => {
    const status = { analogs: { a: 5 }, digital_interrupts: { i: 0 }, pins_high: ['7'], outputs: { '8': true } };
    expect(partsOfStatus(status)).toEqual({ pin: ['7', '8'], analog: ['a'], interrupt: ['i'] });
  });

  it('takes anything else as nothing', () => {
    expect(partsOfStatus({})).toEqual(NO_PARTS);
    expect(partsOfStatus({ analogs: 5, pins_high: [1, null] })).toEqual(NO_PARTS);
  });
});

describe('parseParts', () => {
  it('reads what was kept', () => {
    expect(parseParts('{"pin":["7"]}')).toEqual({ pin: ['7'], analog: [], interrupt: [] });
  });

  it('begins anew with what cannot be read', () => {
    for (const text of [null, '', 'null', '[', '"x"']) expect(parseParts(text)).toEqual(NO_PARTS);
  });
});

it('unites without duplicates, up to the limit', () => {
  expect(unite(['1', '2'], ['2', '3'])).toEqual(['1', '2', '3']);
  expect(
    unite(
      Array.from({ length: 50 }, (_, index) => String(index)),
      [],
    ).length,
  ).toBe(MAX_PARTS);
});

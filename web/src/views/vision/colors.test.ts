import { expect, it } from 'vitest';
import { colorOf } from './colors';

it('a label has the same color in every session', () => {
  expect(colorOf('gear')).toBe(colorOf('gear'));
  expect(new Set(['gear', 'bolt', 'nut', 'person', 'car'].map(colorOf)).size).toBe(5);
});

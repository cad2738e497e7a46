import { expect, it } from 'vitest';
import { chooseField, describeEmpty, listChoices, makeItem, parseField, rankField, showField } from './attribute';

const NUMBER = { type: 'number' };
const TEXT = { type: ['string', 'null'] };

it('chooses a field by the schema', () => {
  expect(chooseField(NUMBER, 1)).toBe('number');
  expect(chooseField({ type: ['integer', 'null'] }, undefined)).toBe('number');
  expect(chooseField(TEXT, 'a')).toBe('text');
  expect(chooseField({ type: 'boolean' }, true)).toBe('choice');
  expect(chooseField({}, 1)).toBe('json');
});

it('shows a variable in the place of a number or a choice, and keeps it', () => {
  expect(chooseField(NUMBER, '${PORT}')).toBe('number');
  expect(showField('number', '${PORT}')).toBe('${PORT}');
  expect(parseField('number', '${PORT}')).toEqual({ value: '${PORT}', problem: '' });
  expect(listChoices({ type: 'boolean' }, '${ON}')).toEqual([true, false, '${ON}']);
  expect(listChoices({ type: 'boolean' }, undefined)).toEqual([true, false]);
});

it('has fields for parts', () => {
  const list = { type: 'array', items: TEXT };
  expect(chooseField(list, undefined)).toBe('list');
  expect(chooseField(list, ['a'])).toBe('list');
  expect(chooseField(list, '${ALL}')).toBe('json');
  expect(chooseField(list, Array(101).fill('a'))).toBe('json');
  expect(chooseField({ type: 'object', properties: { a: TEXT } }, { a: 'b' })).toBe('object');
  expect(chooseField({ type: 'object', additionalProperties: NUMBER }, { a: 1 })).toBe('map');
  expect(chooseField({ type: 'object' }, { a: 1 })).toBe('json');
  expect(chooseField({ type: 'string', 'x-depends-on': 'rdk:component:motor' }, 'm')).toBe('resource');
  expect([list, NUMBER, TEXT, { type: 'boolean' }].map(makeItem)).toEqual([[], 0, '', true]);
});

it('shows as JSON what does not fit the schema', () => {
  expect(chooseField(NUMBER, [1])).toBe('json');
  expect(chooseField(TEXT, 5)).toBe('json');
  expect(showField('json', [1])).toBe('[1]');
});

it('reads what is typed, and says what is wrong with it', () => {
  expect(parseField('number', ' 1.5 ')).toEqual({ value: 1.5, problem: '' });
  expect(parseField('text', '1.5')).toEqual({ value: '1.5', problem: '' });
  expect(parseField('json', '{"a": 1}')).toEqual({ value: { a: 1 }, problem: '' });
  for (const kind of ['number', 'text', 'json'] as const) expect(parseField(kind, ' ')).toEqual({ value: undefined, problem: '' });
  for (const text of ['1,5', 'a', 'Infinity']) expect(parseField('number', text).problem).toBe('this is not a number');
  expect(parseField('json', '{').problem).toContain('not JSON');
});

it('says what an empty field stands for', () => {
  expect(describeEmpty({ type: 'number', default: 15 })).toBe('default: 15');
  expect(describeEmpty({ type: 'string', default: '' })).toBe('');
  expect(describeEmpty({ type: 'array' })).toBe('JSON: [ … ]');
  expect(describeEmpty({ type: ['object', 'null'] })).toBe('JSON: { … }');
});

it('puts what is required first, and JSON last', () => {
  const ranks = [rankField(TEXT, true), rankField({}, true), rankField(TEXT, false), rankField({}, false)];
  expect(ranks).toEqual(ranks.toSorted());
  expect(new Set(ranks).size).toBe(4);
});

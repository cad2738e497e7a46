import { describe, expect, it } from 'vitest';
import { formatJson, parseObject } from './json';

describe('parseObject', () => {
  it('reads an object', () => expect(parseObject('{"a": [1]}')).toEqual({ value: { a: [1] }, problem: '' }));
  it('says what is wrong', () => {
    expect(parseObject('{"a": }').problem).toMatch(/^not JSON: /);
    expect(parseObject('[1]').problem).toContain('object');
    expect(parseObject('null').value).toBeNull();
  });
});

describe('formatJson', () => {
  it('shows large integers', () => expect(formatJson({ n: 2n ** 60n })).toContain('1152921504606846976'));
  it('shows what JSON does not know', () => expect(formatJson(undefined)).toBe('undefined'));
});

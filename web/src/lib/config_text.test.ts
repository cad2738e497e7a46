import { expect, it } from 'vitest';
import { appendValue, isWellFormed, readText, readTree, setValue } from './config_text';

it('reads variables outside of strings as text', () => {
  const text = '{"port": ${PORT}, "on": ${ON:-"yes"}, "n": $COUNT, "s": "${A}", /* $B */ "last": 1} // ${C}';
  expect(readText(text)).toEqual({ port: '${PORT}', on: '${ON:-"yes"}', n: '$COUNT', s: '${A}', last: 1 });
});

it('keeps variables and comments when something else is set', () => {
  const text = '{\n  // here\n  "port": ${PORT},\n  "a": 1\n}';
  expect(setValue(text, ['a'], 2)).toBe('{\n  // here\n  "port": ${PORT},\n  "a": 2\n}');
  expect(setValue(text, ['port'], 8080)).toBe('{\n  // here\n  "port": 8080,\n  "a": 1\n}');
});

it('keeps variables on the line of what is set', () => {
  const set = setValue('{"a": {"port": ${PORT:-"1"}, "b": $B}}', ['a', 'c'], 1);
  expect(readText(set)).toEqual({ a: { port: '${PORT:-"1"}', b: '$B', c: 1 } });
  expect(set).not.toContain('"$');
});

it('reads a large text with many variables', () => {
  const text = `{"a": [${'"$", "\\\\", ${A}, /* " */ '.repeat(50_000)}1]}`;
  expect((readText(text) as { a: unknown[] }).a).toHaveLength(150_001);
});

it('removes a value, and nothing where there is none', () => {
  expect(JSON.parse(setValue('{"a": {"b": 1, "c": 2}}', ['a', 'b'], undefined))).toEqual({ a: { c: 2 } });
  expect(setValue('{"a": null}', ['a', 'b'], undefined)).toBe('{"a": null}');
});

it('replaces what has no room for the value', () => {
  for (const there of ['null', '1', '"x"', '[]']) {
    expect(readText(setValue(`{"a": ${there}}`, ['a', 'b', 'c'], 1))).toEqual({ a: { b: { c: 1 } } });
  }
});

it('appends to a list, also where there is none', () => {
  for (const text of ['', '{}', '{"list": null}', '{"list": []}']) {
    expect(readText(appendValue(text, ['list'], 1))).toEqual({ list: [1] });
  }
  expect(readText(appendValue('{"list": [1] /* one */}', ['list'], 2))).toEqual({ list: [1, 2] });
});

it('leaves what is before an appended value as it is', () => {
  const text = '{\n  "list": [\n    {"a": 1}, {"b": 2} // two\n  ]\n}';
  expect(appendValue(text, ['list'], { c: 3 })).toBe('{\n  "list": [\n    {"a": 1}, {"b": 2},\n    {\n      "c": 3\n    } // two\n  ]\n}');
});

it('tells whether a text is well formed', () => {
  for (const text of ['{}', '{"a": [1,],} // b', '{"a": ${PORT}}']) expect(isWellFormed(text)).toBe(true);
  for (const text of ['', '{', '{"a" 1}', '['.repeat(200_000)]) expect(isWellFormed(text)).toBe(false);
});

it('reads nothing from a text that is nested too deeply', () => {
  const text = '['.repeat(200_000);
  expect(readText(text)).toBeUndefined();
  expect(readTree(text)).toBeUndefined();
});

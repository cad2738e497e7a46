/** The text of a configuration: JSON with comments and with variables of the environment, as `${PORT}`. */

import { applyEdits, findNodeAtLocation, modify, parse, parseTree, type JSONPath, type Node, type ParseError } from 'jsonc-parser';

const OPTIONS = { formattingOptions: { insertSpaces: true, tabSize: 2 } };
const NAME = '[A-Za-z_][A-Za-z0-9_]*';
const VARIABLE = String.raw`\$\{${NAME}(?::?[-=+][^}]*)?\}|\$${NAME}`;
/** A string, a comment, a variable outside of both, or one that does not end. */
const TOKEN = new RegExp(String.raw`"(?:[^"\\\n\r]|\\[^\n\r])*"?|//[^\n\r]*|/\*[^]*?(?:\*/|$)|(${VARIABLE})|\$\{[^}]*`, 'g');

/**
 * The value of the text; undefined if there is none. Mistakes in the text are skipped, and variables are
 * read as text.
 */
export function readText(text: string): unknown {
  return unlessTooDeep(() => parse(replaceVariables(text, JSON.stringify)) as unknown);
}

/** The value of the text with the place of every part. */
export function readTree(text: string): Node | undefined {
  return unlessTooDeep(() => parseTree(hideVariables(text)));
}

/** Sets or, with undefined, removes a value, and keeps the rest of the text as it is. */
export function setValue(text: string, path: JSONPath, value: unknown): string {
  const [reached, rest] = splitPath(readText(text), path);
  if (rest.length > 0 && value === undefined) return text;
  // What is there, such as null, may have no room for the value.
  const container = rest.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
  // An edit may format what is beside it, so variables are put back only afterwards.
  const variables: string[] = [];
  const source = replaceVariables(text, (variable) => `"\uE000${variables.push(variable) - 1}\uE000"`);
  const changed = applyEdits(source, modify(source, reached, container, OPTIONS));
  return changed.replaceAll(/"\uE000(\d+)\uE000"/g, (token, index: string) => variables[Number(index)] ?? token);
}

/** Adds a value at the end of a list, which is made if there is none, on lines of its own. */
export function appendValue(text: string, path: JSONPath, value: unknown): string {
  const source = text.trim() === '' ? '{}\n' : text;
  const tree = readTree(source);
  const last = tree && findNodeAtLocation(tree, path)?.children?.at(-1);
  if (last === undefined) return setValue(source, path, [value]);
  const [end, indent] = [last.offset + last.length, indentAt(source, last.offset)];
  return `${source.slice(0, end)},\n${indent}${JSON.stringify(value, null, 2).replaceAll('\n', `\n${indent}`)}${source.slice(end)}`;
}

/** Whether the text has no mistake in its form. */
export function isWellFormed(text: string): boolean {
  const errors: ParseError[] = [];
  return unlessTooDeep(() => (parse(hideVariables(text), errors, { allowTrailingComma: true }), errors.length === 0)) ?? false;
}

/** The white space before the line of a place. */
function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset) + 1, offset);
  return /^[ \t]*/.exec(line)![0];
}

/** Turns variables outside of strings into strings of the same length, so that everything stays in its place. */
function hideVariables(text: string): string {
  return replaceVariables(text, (variable) => `"${'_'.repeat(variable.length - 2)}"`);
}

function replaceVariables(text: string, replace: (variable: string) => string): string {
  return text.replace(TOKEN, (token, variable: string | undefined) => (variable === undefined ? token : replace(variable)));
}

/** The longest part of a path whose end can be set, and what would have to be made below it. */
function splitPath(document: unknown, path: JSONPath): [JSONPath, JSONPath] {
  let value = document;
  for (const [index, step] of path.entries()) {
    const isContainer = typeof step === 'number' ? Array.isArray(value) : isObject(value);
    if (value !== undefined && !isContainer) return [path.slice(0, index), path.slice(index)];
    value = childOf(value, step);
  }
  return [path, []];
}

function childOf(value: unknown, step: string | number): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[step] : undefined;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unlessTooDeep<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

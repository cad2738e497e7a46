export type JsonObject = { [key: string]: JsonData };
export type JsonData = string | number | boolean | null | JsonData[] | JsonObject;

export type Parsed = { readonly value: JsonObject; readonly problem: '' } | { readonly value: null; readonly problem: string };

/** Reads a JSON object that somebody types, and says what is wrong with it. */
export function parseObject(text: string): Parsed {
  try {
    const value = JSON.parse(text) as unknown;
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return { value: value as JsonObject, problem: '' };
    return { value: null, problem: 'use a JSON object: { "key": value }' };
  } catch (error) {
    return { value: null, problem: `not JSON: ${(error as Error).message}` };
  }
}

/** JSON for reading; what JSON cannot express is shown as text. */
export function formatJson(value: unknown): string {
  const text = JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each), 2);
  return text ?? String(value);
}

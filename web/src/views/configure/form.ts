import type { JSONPath } from 'jsonc-parser';
import type { Snippet } from 'svelte';
import type { Schema } from './json_schema';

/** What the fields of a form share. Paths begin at the resource. */
export interface Form {
  readonly root: Schema;
  /** The resources of an API that an attribute may name. */
  readonly listNames: (api: string) => readonly string[];
  /** What the machine says is wrong at a place or, with `inside`, below it; empty if nothing is. */
  readonly complain: (path: JSONPath, inside: boolean) => string;
  /** Sets a value or, with undefined, removes it. */
  readonly change: (path: JSONPath, value: unknown) => void;
  readonly append: (path: JSONPath, value: unknown) => void;
}

export interface FieldProps {
  readonly label: string;
  readonly path: JSONPath;
  readonly schema: Schema;
  readonly value: unknown;
  readonly required?: boolean;
  readonly form: Form;
  /** Shows a field inside of this one. */
  readonly field: Snippet<[FieldProps]>;
}

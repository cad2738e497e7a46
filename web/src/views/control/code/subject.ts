import type { Resource } from '../../../machine/status';

/** What a program is about. */
export interface Subject {
  readonly resource: Pick<Resource, 'api' | 'shortName' | 'fullName' | 'subtype'>;
  /** The camera that a vision service looks at; empty if the machine has none. */
  readonly camera: string;
  /** What the `acts` do, as a comment above them. */
  readonly effect: string;
}

/** What a program does. The lines of `acts` are comments, because they move or change something. */
export interface Lines {
  readonly reads: readonly string[];
  readonly acts: readonly string[];
}

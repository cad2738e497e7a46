import { expect, it } from 'vitest';

// A test, because the usual lint rule (import-x/no-cycle) does not follow imports of types, and needs a native resolver.
const FILES = import.meta.glob<string>(['./**/*.{ts,svelte}', '!./**/*.test.ts'], { query: '?raw', import: 'default', eager: true });
const IMPORT = /(?:from|import)\s*\(?\s*'(\.[^']*)'/g;

function resolveImport(file: string, specifier: string): string | undefined {
  const { pathname } = new URL(specifier, `file:///${file}`);
  const path = `.${pathname.replace(/\/$/, '')}`;
  return [path, `${path}.ts`, `${path}/index.ts`].find((each) => each in FILES);
}

function listImports(file: string): string[] {
  const specifiers = [...FILES[file]!.matchAll(IMPORT)].map((match) => match[1]!);
  return specifiers.map((each) => resolveImport(file, each)).filter((each) => each !== undefined);
}

/** Returns the files of an import cycle, if there is one. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    done.add(file);
    return [];
  };
  return [...graph.keys()].map((each) => visit(each, [])).find((each) => each.length > 0) ?? [];
}

it('has no import cycles', () => {
  const graph = new Map(Object.keys(FILES).map((each) => [each, listImports(each)]));
  expect(graph.get('./main.ts')).toContain('./App.svelte');
  expect(graph.get('./cards/index.ts')).toContain('./cards/Motor.svelte');
  expect(findCycle(graph)).toEqual([]);
});

it('finds a cycle', () => {
  const graph = new Map([
    ['a', ['b', 'c']],
    ['b', ['c']],
    ['c', ['b']],
  ]);
  expect(findCycle(graph)).toEqual(['b', 'c', 'b']);
});

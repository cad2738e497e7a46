import type { ConfigDiagnostic } from '../../machine/configuration';

/** Whether a diagnostic is about a place of the text, or what is in it. */
export function isAbout(diagnostic: ConfigDiagnostic, pointer: string): boolean {
  return diagnostic.pointer === pointer || diagnostic.pointer.startsWith(`${pointer}/`);
}

export function countErrors(diagnostics: readonly ConfigDiagnostic[]): number {
  return diagnostics.filter((each) => each.severity === 'error').length;
}

/** Diagnostics by what the machine does about them, errors first. */
export function sortByEffect(diagnostics: readonly ConfigDiagnostic[]): [string, ConfigDiagnostic[]][] {
  const found = new Map<string, ConfigDiagnostic[]>();
  for (const each of diagnostics) {
    const effect = each.effect ?? 'something is wrong';
    found.set(effect, [...(found.get(effect) ?? []), each]);
  }
  return [...found].toSorted(([, a], [, b]) => Math.sign(countErrors(b)) - Math.sign(countErrors(a)));
}

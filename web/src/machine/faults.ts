/** What is wrong with the configuration that the machine runs. */

import { pluralize } from '../lib/text';
import type { ConfigReport, Resource } from './status';

/** `1 error, 2 warnings`; empty without either. */
export function describeCounts({ errors, warnings }: { readonly errors: number; readonly warnings: number }): string {
  return [errors && pluralize(errors, 'error'), warnings && pluralize(warnings, 'warning')].filter(Boolean).join(', ');
}

/** Whether the reason of a resource is only what is wrong with its configuration. */
export function isExplained({ fullName, reason }: Resource, report: ConfigReport | null | undefined): boolean {
  if (!reason || !report) return false;
  return report.diagnostics.some(
    ({ resource, message }) => resource === fullName && (reason.includes(message) || message.includes(reason)),
  );
}

/** The errors and warnings of each resource that runs, by its full name. */
export function countByResource(report: ConfigReport | null): ReadonlyMap<string, { errors: number; warnings: number }> {
  const counts = new Map<string, { errors: number; warnings: number }>();
  // A file that is refused says nothing about what runs instead.
  if (report?.running !== 'this') return counts;
  for (const { resource, severity } of report.diagnostics) {
    if (!resource) continue;
    const count = counts.get(resource) ?? { errors: 0, warnings: 0 };
    counts.set(resource, severity === 'error' ? { ...count, errors: count.errors + 1 } : { ...count, warnings: count.warnings + 1 });
  }
  return counts;
}

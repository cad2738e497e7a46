import { pluralize } from '../../lib/text';
import type { ModuleStatus } from '../../machine/status';
import { formatBytes } from '../diagnose/bytes';

/** All modules in one sentence: `3 modules: 2 ready, 1 unhealthy; 120 MB of memory`. */
export function summarize(modules: readonly ModuleStatus[]): string {
  const counts = new Map<string, number>();
  for (const { state } of modules) counts.set(state, (counts.get(state) ?? 0) + 1);
  const states = [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
  const memory = modules.reduce((sum, each) => sum + (each.memory_bytes ?? 0), 0);
  return `${pluralize(modules.length, 'module')}: ${states}${memory > 0 ? `; ${formatBytes(memory)} of memory` : ''}`;
}

/** Modules that fail come first, also while they are being started again. */
export function putFailedFirst(modules: readonly ModuleStatus[]): ModuleStatus[] {
  const hasFailed = ({ state, failures }: ModuleStatus) => failures > 0 || state === 'unhealthy';
  return [...modules.filter(hasFailed), ...modules.filter((each) => !hasFailed(each))];
}

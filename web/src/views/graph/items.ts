import type { Resource } from '../../machine/status';
import type { GraphNode } from './layout';

/** What the graph shows: a resource, or a dependency that the machine does not have. */
export interface GraphItem extends GraphNode {
  readonly name: string;
  readonly subtype: string;
  readonly model: string;
  /** The state of the resource, or `missing`. */
  readonly condition: string;
  readonly reason: string;
  readonly module: string;
}

export const MISSING = 'missing';

export function makeItems(resources: readonly Resource[], modules: ReadonlyMap<string, string>): GraphItem[] {
  const known = new Set(resources.map((each) => each.fullName));
  const missing = new Set<string>();
  const items = resources.map((each): GraphItem => {
    const dependsOn = each.depends_on;
    for (const other of dependsOn) if (!known.has(other)) missing.add(other);
    return {
      id: each.fullName,
      dependsOn,
      name: each.shortName,
      subtype: each.subtype,
      model: each.model,
      condition: each.state,
      reason: each.reason ?? '',
      module: modules.get(each.fullName) ?? '',
    };
  });
  for (const id of missing) {
    const reason = 'something depends on it, but it is not configured';
    items.push({ id, dependsOn: [], name: id, subtype: '', model: '', condition: MISSING, reason, module: '' });
  }
  return items;
}

/** Changes when the graph has to be laid out again, and not with states. */
export function structureOf(items: readonly GraphItem[]): string {
  return JSON.stringify(items.map((each) => [each.id, each.dependsOn]));
}

import type { Resource } from '../../machine/status';

/** A model that a module provides, as `getModelsFromModules` says. */
export interface ModuleModel {
  readonly moduleName: string;
  readonly model: string;
  readonly api: string;
}

/** The module of each resource that has one, by the full name of the resource. */
export function findModules(resources: readonly Resource[], models: readonly ModuleModel[]): Map<string, string> {
  const byModel = new Map(models.map((each) => [`${each.api} ${each.model}`, each.moduleName]));
  return new Map(
    resources.flatMap((each): [string, string][] => {
      const module = byModel.get(`${each.api} ${each.model}`);
      return module === undefined ? [] : [[each.fullName, module]];
    }),
  );
}

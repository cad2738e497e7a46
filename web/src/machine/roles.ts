import { ROLE_BY_METHOD, ROLE_BY_PATH } from './method_roles';
import type { Role } from './status';

/** From the lowest: each role may do what those before it may. */
const ROLES: readonly Role[] = ['viewer', 'operator', 'owner'];
const PUBLIC_PREFIX = 'viam.';

/** The role that a method requires, as the machine decides it. */
export function requiredRole(service: string, method: string): Role {
  // What a method of a module does, only the module knows: it may move something.
  if (!service.startsWith(PUBLIC_PREFIX)) return 'operator';
  return ROLE_BY_PATH.get(`/${service}/${method}`) ?? ROLE_BY_METHOD.get(method) ?? 'owner';
}

export function mayCall(role: Role, service: string, method: string): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(requiredRole(service, method));
}

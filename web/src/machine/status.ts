/** What `/status.json` and `/access.json` say. */

export type ResourceState = 'unconfigured' | 'configuring' | 'ready' | 'unhealthy' | 'removing';

export interface ResourceStatus {
  readonly name: string;
  readonly model: string;
  readonly state: ResourceState;
  readonly reason: string | null;
  readonly since: number;
  readonly revision?: string;
  readonly depends_on: readonly string[];
  readonly ignored_settings?: readonly string[];
  /** Who moved it last; null if it was stopped since. */
  readonly moved_by?: Mover | null;
}

export interface Mover {
  readonly who: string;
  /** The beginning of the id of its session; null if it moves without one. */
  readonly session: string | null;
}

/** What a process and those that it started use. A share of a core is the difference of two `cpu_seconds`. */
export interface ProcessUse {
  readonly memory_bytes: number;
  readonly cpu_seconds: number;
  readonly uptime_seconds: number;
}

export interface ServerStatus extends ProcessUse {
  /** The longest delay of the last two seconds; null until it is known. */
  readonly loop_lag_seconds: number | null;
  readonly calls_started: number;
  readonly calls_running: number;
  readonly sessions: number;
  readonly computer: {
    readonly cores: number;
    readonly load: number;
    readonly memory_bytes: number;
    readonly memory_available_bytes: number;
  };
}

/** The use is null while there is no process. */
export interface ModuleStatus extends Nullable<ProcessUse> {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly since: number;
  readonly failures: number;
  readonly starts: number;
  readonly pid: number | null;
}

/** A program of the configuration that is not a module. */
export interface ProcessStatus extends Nullable<ProcessUse> {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly since: number;
  readonly restarts: number;
  readonly pid: number | null;
}

/** Files that the machine gets by itself. */
export interface PackageStatus {
  readonly name: string;
  readonly type: string;
  readonly version: string;
  readonly state: string;
  readonly since: number;
  readonly reason: string;
  /** Bytes of the archive. */
  readonly done: number;
  readonly total: number | null;
}

type Nullable<T> = { readonly [key in keyof T]: T[key] | null };

export interface Diagnostic {
  readonly code?: string;
  readonly severity?: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly path?: string;
  readonly hint?: string | null;
  readonly file?: string;
  readonly effect?: string;
  /** The place in the file as a JSON pointer. */
  readonly pointer: string;
  /** The full name of the resource that it is about. */
  readonly resource?: string | null;
}

export interface ConfigReport {
  readonly file: string | null;
  readonly state: 'valid' | 'faulty' | 'refused';
  readonly running: 'this' | 'earlier' | 'last_good' | 'none';
  readonly since: number;
  readonly errors: number;
  readonly warnings: number;
  /** The first ones, the most severe first. */
  readonly diagnostics: readonly Diagnostic[];
}

export interface MachineStatus {
  readonly state: string;
  readonly revision: string;
  readonly applied_at: number | null;
  readonly configuration: ConfigReport | null;
  /** What is wrong between the machine and its cloud. */
  readonly cloud_notices?: readonly string[];
  readonly server: ServerStatus;
  readonly resources: readonly ResourceStatus[];
  readonly modules: readonly ModuleStatus[];
  readonly processes?: readonly ProcessStatus[];
  readonly packages?: readonly PackageStatus[];
  readonly jobs: readonly Record<string, unknown>[];
  readonly [key: string]: unknown;
}

export type Role = 'owner' | 'operator' | 'viewer';

/** Who this page is to the machine. */
export interface Access {
  readonly machine: string;
  readonly version: string;
  readonly login: boolean;
  readonly entity: string;
  readonly role: Role;
  /** Whether the machine accepts WebRTC. */
  readonly webrtc: boolean;
}

/** A resource with its name taken apart: `rdk:component:camera/belt`. */
export interface Resource extends ResourceStatus {
  readonly fullName: string;
  /** `rdk:component:camera` */
  readonly api: string;
  /** `component` or `service` */
  readonly kind: string;
  /** `camera` */
  readonly subtype: string;
  /** `belt`; with the names of remotes before it */
  readonly shortName: string;
}

/** Takes names apart. A resource that has not changed stays the same object, so that nothing asks again for it. */
export function parseResources(statuses: readonly ResourceStatus[], before: readonly Resource[]): readonly Resource[] {
  const known = new Map(before.map((each) => [each.fullName, each]));
  return statuses.map((status) => {
    const earlier = known.get(status.name);
    const isSame =
      earlier !== undefined && Object.entries(status).every(([key, value]) => isEqual(value, earlier[key as keyof ResourceStatus]));
    return isSame ? earlier : parseResource(status);
  });
}

function isEqual(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && JSON.stringify(a) === JSON.stringify(b));
}

function parseResource(status: ResourceStatus): Resource {
  const slash = status.name.indexOf('/');
  const api = status.name.slice(0, slash);
  const [, kind = '', subtype = ''] = api.split(':');
  return { ...status, fullName: status.name, api, kind, subtype, shortName: status.name.slice(slash + 1) };
}

/** Who moves a resource, for people. `own` are the sessions of this page. */
export function describeMover({ moved_by: mover }: ResourceStatus, own: readonly string[]): string {
  if (!mover) return '';
  const { session } = mover;
  return session !== null && own.some((each) => each.startsWith(session)) ? 'this page' : mover.who;
}

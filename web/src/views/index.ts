import type { Component } from 'svelte';
import type { IconName } from '../ui/Icon.svelte';
import type { Machine } from '../machine/machine.svelte';

export interface View {
  readonly id: IconName & string;
  readonly title: string;
  readonly load: () => Promise<{ default: Component }>;
  /** Whether the view has something to offer to the person who is logged in. */
  readonly isFor?: (machine: Machine) => boolean;
}

/** In the order of the rail. The first four are in the bar of a phone. */
export const VIEWS: readonly View[] = [
  { id: 'overview', title: 'Overview', load: () => import('./overview/Overview.svelte') },
  { id: 'control', title: 'Control', load: () => import('./control/Control.svelte') },
  { id: 'vision', title: 'Vision', load: () => import('./vision/Vision.svelte') },
  {
    id: 'configure',
    title: 'Configure',
    load: () => import('./configure/Configure.svelte'),
    isFor: (machine) => machine.mayConfigure,
  },
  { id: 'graph', title: 'Graph', load: () => import('./graph/Graph.svelte') },
  { id: 'logs', title: 'Logs', load: () => import('./logs/Logs.svelte') },
  { id: 'modules', title: 'Modules', load: () => import('./modules/Modules.svelte') },
  { id: 'frames', title: 'Frames', load: () => import('./frames/Frames.svelte') },
  { id: 'jobs', title: 'Jobs', load: () => import('./jobs/Jobs.svelte') },
  { id: 'diagnose', title: 'Diagnose', load: () => import('./diagnose/Diagnose.svelte') },
];

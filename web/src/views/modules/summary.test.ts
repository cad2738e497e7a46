import { expect, test } from 'vitest';
import type { ModuleStatus } from '../../machine/status';
import { putFailedFirst, summarize } from './summary';

const module = (state: string, memory: number | null) => ({ state, memory_bytes: memory }) as ModuleStatus;

test('modules are counted by their state, and their memory is added up', () => {
  const modules = [module('ready', 40e6), module('unhealthy', null), module('ready', 60e6)];
  expect(summarize(modules)).toBe('3 modules: 2 ready, 1 unhealthy; 100 MB of memory');
  expect(summarize([module('pending', null)])).toBe('1 module: 1 pending');
});

test('modules that fail come first, and the others keep their order', () => {
  const modules = [
    { name: 'a', state: 'ready', failures: 0 },
    { name: 'b', state: 'starting', failures: 3 },
    { name: 'c', state: 'ready', failures: 0 },
    { name: 'd', state: 'unhealthy', failures: 0 },
  ] as ModuleStatus[];
  expect(putFailedFirst(modules).map((each) => each.name)).toEqual(['b', 'd', 'a', 'c']);
});

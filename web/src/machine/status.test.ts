import { expect, it } from 'vitest';
import { parseResources, type ResourceStatus } from './status';

const BELT: ResourceStatus = {
  name: 'rdk:component:camera/a/belt',
  model: 'fake',
  state: 'ready',
  reason: null,
  since: 1,
  depends_on: ['x'],
};

it('takes names apart', () => {
  const [found] = parseResources([BELT], []);
  expect([found?.api, found?.kind, found?.subtype, found?.shortName]).toEqual(['rdk:component:camera', 'component', 'camera', 'a/belt']);
});

it('keeps what has not changed', () => {
  const first = parseResources([BELT], []);
  expect(parseResources([{ ...BELT, depends_on: ['x'] }], first)[0]).toBe(first[0]);
  expect(parseResources([{ ...BELT, state: 'unhealthy' }], first)[0]).not.toBe(first[0]);
});

import { expect, it } from 'vitest';
import { describeMover, parseResources, type ResourceStatus } from './status';

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

it('tells the movers apart', () => {
  const movedBy = (session: string | null) => describeMover({ ...BELT, moved_by: { who: '10.0.0.7', session } }, ['', '1f3a9c02-aa']);
  expect([movedBy('1f3a9c02'), movedBy('77777777'), movedBy(null)]).toEqual(['this page', '10.0.0.7', '10.0.0.7']);
  expect(describeMover({ ...BELT, moved_by: null }, [])).toBe('');
});

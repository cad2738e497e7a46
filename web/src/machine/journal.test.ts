import { expect, test } from 'vitest';
import { describeEvent, parseEvents, readJournal } from './journal';

const time = '2026-01-01T00:00:00.000Z';

test('what is not an event is left out', () => {
  expect(parseEvents({})).toEqual([]);
  expect(parseEvents([null, 7, { time: 'x' }, { time, event: 'started' }]).map((each) => each.kind)).toEqual(['started']);
});

test('an unhealthy resource is bad news with its reason', () => {
  const [event] = parseEvents([{ time, event: 'resource', resource: 'm', state: 'unhealthy', reason: 'no power' }]);
  expect(describeEvent(event!)).toEqual({ subject: 'm', text: 'unhealthy', reason: 'no power', tone: 'bad' });
});

test('a process that failed is bad news with its reason', () => {
  const details = { event: 'process', process: 'web', state: 'failed', reason: 'exited with code 1' };
  const [event] = parseEvents([{ time, ...details }]);
  const text = { subject: 'process web', text: 'failed', reason: 'exited with code 1', tone: 'bad' };
  expect(describeEvent(event!)).toEqual(text);
});

test('an event of a kind that the page does not know is shown as it is', () => {
  const [event] = parseEvents([{ time, event: 'eclipse', of: 'the sun' }]);
  expect(describeEvent(event!)).toMatchObject({ subject: 'eclipse', text: '{"of":"the sun"}' });
});

test('only the last events are asked for', async () => {
  const paths: string[] = [];
  const send = async (path: string) => {
    paths.push(path);
    return new Response(JSON.stringify([{ time, event: 'started' }]));
  };
  expect(await readJournal(send)).toHaveLength(1);
  await readJournal(send, 200);
  expect(paths).toEqual(['/history.json?last=20', '/history.json?last=200']);
});

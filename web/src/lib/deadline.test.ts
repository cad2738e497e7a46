import { expect, it } from 'vitest';
import { describeError } from '../machine/errors';
import { withDeadline } from './deadline';

it('gives what comes in time', async () => {
  expect(await withDeadline(Promise.resolve(1), 1000)).toBe(1);
});

it('fails with a sentence when nothing comes', async () => {
  const error: unknown = await withDeadline(new Promise(() => {}), 1).catch((each: unknown) => each);
  expect(describeError(error)).toBe('the machine did not answer in time');
});

import { expect, test, vi } from 'vitest';
import { MOVING_METHODS } from './moving_methods';
import { sdkService } from './services';
import { Session, type StartedSession } from './session';
import { addSession } from './session_client';

class Expired extends Error {
  readonly rawMessage = 'SESSION_EXPIRED';
}

type Call = (request: object, options?: { headers?: HeadersInit }) => Promise<unknown>;

/** A client of motors, whose calls a test answers, in a session that opens as the test says. */
function makeMotors(answer: Call, start?: () => Promise<StartedSession>) {
  let count = 0;
  start ??= async () => ({ id: `session ${++count}`, window: 2000 });
  const session = new Session({ start, sendHeartbeat: async () => {}, end: () => {} });
  const motors = addSession<Record<string, Call>>({ setPower: answer, isMoving: answer }, sdkService('rdk:component:motor')!, session);
  return { motors, session };
}

function sessionOf(options: Parameters<Call>[1]): string | null {
  return new Headers(options?.headers).get('viam-sid');
}

test('what moves names the session, and what reads does not', async () => {
  const seen: (string | null)[] = [];
  const { motors } = makeMotors(async (_, options) => seen.push(sessionOf(options)));
  await motors.setPower!({}, { headers: { other: 'kept' } });
  await motors.isMoving!({});
  expect(seen).toEqual(['session 1', null]);
});

test('a call that the machine refused because its session had expired is made in another one', async () => {
  const seen: (string | null)[] = [];
  const { motors } = makeMotors(async (_, options) => {
    seen.push(sessionOf(options));
    if (seen.length === 1) throw new Expired();
  });
  await motors.setPower!({});
  expect(seen).toEqual(['session 1', 'session 2']);
});

test('a call whose session is open too late is not made', async () => {
  vi.useFakeTimers();
  const answer = vi.fn(async () => {});
  const { motors } = makeMotors(answer, async () => {
    await new Promise((wake) => setTimeout(wake, 900));
    return { id: 'late', window: 2000 };
  });
  const refused = expect(motors.setPower!({})).rejects.toThrow('nothing was moved');
  await vi.advanceTimersByTimeAsync(900);
  await refused;
  expect(answer).not.toHaveBeenCalled();
  vi.useRealTimers();
});

test('a call that was on its way when the page was hidden is not made again', async () => {
  const answer = vi.fn(async () => {
    session.pause();
    throw new Expired();
  });
  const { motors, session } = makeMotors(answer);
  await expect(motors.setPower!({})).rejects.toThrow('the page is hidden');
  expect(answer).toHaveBeenCalledTimes(1);
});

test('other errors are errors of the machine', async () => {
  const { motors } = makeMotors(() => Promise.reject(new Error('too fast')));
  await expect(motors.setPower!({})).rejects.toThrow('too fast');
});

test('the SDK knows every method that moves and that a page can call', () => {
  const known = ['arm', 'base', 'button', 'gantry', 'gripper', 'motor', 'servo', 'switch']
    .map((each) => `rdk:component:${each}`)
    .concat('rdk:service:motion')
    .flatMap((api) => {
      const service = sdkService(api)!;
      return Object.values(service.methods).map((method) => `/${service.typeName}/${method.name}`);
    });
  const missing = [...MOVING_METHODS].filter((each) => !known.includes(each)).map((each) => each.split('/').at(-1));
  expect(missing).toEqual(['MoveThroughJointPositionsStreamed', 'GoToInputs']);
});

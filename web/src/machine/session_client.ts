/** A client of the machine whose calls that move something belong to a session. */

import { RobotClient } from '@viamrobotics/sdk';
import { MOVING_METHODS } from './moving_methods';
import type { Service } from './service_type';
import { isExpired, Session } from './session';

/**
 * Milliseconds after which a call that had to wait for a session is not made: the button may have been
 * released, and the stop would arrive before the call.
 */
const MAX_DELAY = 800;
const UNARY = 0;

type Options = { readonly headers?: HeadersInit };
type Call = (request: object, options?: Options) => Promise<unknown>;
type ServiceClient = ReturnType<RobotClient['createServiceClient']>;

/**
 * The SDK's own sessions are off: it begins one only for methods of a table that it fills after the
 * first session, and does not begin another one when that has expired.
 */
export class SessionClient extends RobotClient {
  readonly session: Session;

  /** `host` is the address of a machine that is called over gRPC-web. */
  constructor(endSession: (id: string) => void, host?: string) {
    super(host, undefined, { disabled: true }, { noReconnect: true });
    this.session = new Session({
      start: async (resume) => {
        const { id, heartbeatWindow } = await this.robotService.startSession({ resume });
        return { id, window: Number(heartbeatWindow?.seconds ?? 0) * 1000 + (heartbeatWindow?.nanos ?? 0) / 1e6 };
      },
      sendHeartbeat: (id) => this.robotService.sendSessionHeartbeat({ id }),
      end: endSession,
    });
  }

  override createServiceClient<T extends Service>(service: T): ReturnType<typeof RobotClient.prototype.createServiceClient<T>> {
    const client = super.createServiceClient(service);
    return addSession(client as unknown as ServiceClient, service, this.session) as unknown as typeof client;
  }
}

/** Adds the session to the calls of a client that move something. */
export function addSession<T extends object>(client: T, service: Service, session: Session): T {
  const moves = Object.entries(service.methods)
    // Browsers cannot stream requests, so what moves by a stream of them is not called.
    .filter(([, method]) => method.kind === UNARY && MOVING_METHODS.has(`/${service.typeName}/${method.name}`))
    .map(([key]) => [key, moveWithin(session, (client as Record<string, Call>)[key]!)]);
  return { ...client, ...Object.fromEntries(moves) };
}

function moveWithin(session: Session, call: Call): Call {
  return async (request, options) => {
    const begin = performance.now();
    for (;;) {
      const id = await session.open();
      if (performance.now() - begin > MAX_DELAY) {
        throw new Error('the machine did not answer in time, so nothing was moved: try again');
      }
      try {
        return await call(request, { ...options, headers: withSession(options?.headers, id) });
      } catch (error) {
        if (!isExpired(error)) throw error;
        // The machine refused the call. Another session may make it, unless that takes too long.
        session.forget(id);
      }
    }
  };
}

function withSession(headers: HeadersInit | undefined, id: string): Headers {
  const added = new Headers(headers);
  added.set('viam-sid', id);
  return added;
}

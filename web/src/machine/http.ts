/** Requests to the HTTP interface of the machine. */

export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export type Send = (path: string, init?: RequestInit) => Promise<Response>;

const TIMEOUT = 5000;

/** Sends a request, and fails with the machine's own sentence if it is refused. */
export async function send(path: string, token: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set('Authorization', `Bearer ${token}`);
  const signal = init.signal ?? AbortSignal.timeout(TIMEOUT);
  const response = await fetch(path, { ...init, headers, signal, cache: 'no-store' });
  if (!response.ok) throw new HttpError(response.status, await readRefusal(response));
  return response;
}

async function readRefusal(response: Response): Promise<string> {
  const isJson = response.headers.get('Content-Type')?.startsWith('application/json');
  const text = isJson ? String(((await response.json()) as { message?: unknown }).message ?? '') : await response.text();
  return text.trim() || `the machine answered ${response.status}`;
}

/** Exchanges an API key for an access token that expires after some seconds. */
export async function logIn(keyId: string, key: string, lifetime: number): Promise<string> {
  const body = JSON.stringify({ entity: keyId, credentials: { type: 'api-key', payload: key }, lifetime });
  const response = await send('/rpc/v1/authenticate', '', { method: 'POST', body });
  return ((await response.json()) as { accessToken: string }).accessToken;
}

/** Ends a session. The browser sends this also if the page is being closed. */
export function endSession(token: string, id: string): void {
  const request = { method: 'POST', body: JSON.stringify({ id }), keepalive: true };
  // If it is lost, the session expires.
  send('/session/end', token, request).catch(() => undefined);
}

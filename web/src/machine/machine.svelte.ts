/**
 * The connection of this page to its machine.
 *
 * The status is polled over HTTP, which also shows whether the machine is there. Calls are made over
 * gRPC-web at once, and over WebRTC as soon as it is connected. Each connection has a session: what the
 * page moves stops when the page is hidden, closed or lost.
 */

import { MachineConnectionEvent, type RobotClient } from '@viamrobotics/sdk';
import { getContext, setContext } from 'svelte';
import { withDeadline } from '../lib/deadline';
import { dropDraft } from './configuration';
import { describeError } from './errors';
import { endSession, HttpError, logIn, send, type Send } from './http';
import { SessionClient } from './session_client';
import { describeMover, parseResources, type Access, type MachineStatus, type Resource } from './status';

export type Phase = 'connecting' | 'online' | 'login' | 'lost';

const POLL_INTERVAL = 1000;
const HIDDEN_POLL_INTERVAL = 10_000;
const LOST_POLL_INTERVAL = 400;
const DIAL_TIMEOUT = 5000;
const STOP_TIMEOUT = 3000;
const WEBRTC_TIMEOUT = 8000;
/** Until then, the view has what it shows first: connecting takes a slow computer a second of its time. */
const WEBRTC_DELAY = 900;
const WEBRTC_RETRY = 10_000;
/** Seconds after which the page asks for the key again. */
const LOGIN = 12 * 3600;
const REMEMBERED_LOGIN = 7 * 24 * 3600;
const TOKEN_KEY = 'cogwork.token';
const CONTEXT = Symbol('machine');

type ClientClass<T> = new (robot: RobotClient, name: string) => T;

export class Machine {
  phase = $state<Phase>('connecting');
  /** Why the machine cannot be reached, or refuses us. */
  problem = $state('');
  status = $state.raw<MachineStatus | null>(null);
  access = $state.raw<Access | null>(null);
  /** When the status was received, in milliseconds of `performance.now()`. */
  statusAt = $state(0);
  /** Milliseconds that the last status took. */
  latency = $state(0);
  /** Where calls go: over WebRTC if it is connected, else over gRPC-web. */
  robot = $state.raw<SessionClient | null>(null);
  webrtc = $state.raw<SessionClient | null>(null);
  resources = $state.raw<readonly Resource[]>([]);

  #token: string;
  #direct: SessionClient | null = null;
  #webrtcAllowedAt = 0;
  #dialing = false;
  /** Counts logins: what was begun for an earlier one is not used. */
  #generation = 0;
  /** Seconds by which the machine's clock is ahead of ours. */
  #clockOffset = 0;
  #wake: (() => void) | null = null;
  #closed = false;

  constructor() {
    this.#token = sessionStorage.getItem(TOKEN_KEY) ?? localStorage.getItem(TOKEN_KEY) ?? '';
  }

  /** Seconds since 1970 on the machine's clock. */
  now(): number {
    return Date.now() / 1000 + this.#clockOffset;
  }

  get mayControl(): boolean {
    return this.access !== null && this.access.role !== 'viewer';
  }

  get mayConfigure(): boolean {
    return this.access?.role === 'owner';
  }

  send: Send = (path, init) => send(path, this.#token, init);

  client<T>(kind: ClientClass<T>, name: string): T {
    if (this.robot === null) throw new Error('not connected yet');
    return new kind(this.robot, name);
  }

  /** A client for large replies, such as pictures: over gRPC-web they cost the machine and the page less. */
  bulkClient<T>(kind: ClientClass<T>, name: string): T {
    return this.#direct === null ? this.client(kind, name) : new kind(this.#direct, name);
  }

  find(fullName: string): Resource | undefined {
    return this.resources.find((each) => each.fullName === fullName);
  }

  /** Who moves a resource now, for people; empty if that is not known. */
  describeMover(resource: Resource): string {
    return describeMover(
      resource,
      this.#connections().map((each) => each.session.id),
    );
  }

  /** Follows the machine until `close`. */
  async run(): Promise<void> {
    const listening = new AbortController();
    const { signal } = listening;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#hide() : this.#show()), { signal });
    document.addEventListener('freeze', () => this.#hide(), { signal });
    document.addEventListener('resume', () => this.#show(), { signal });
    window.addEventListener('pagehide', () => this.#hide(), { signal });
    window.addEventListener('pageshow', () => this.#show(), { signal });
    while (!this.#closed) {
      await this.#poll();
      await this.#pause();
    }
    listening.abort();
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
    this.#hide();
    void this.webrtc?.disconnect();
  }

  async logIn(keyId: string, key: string, remember: boolean): Promise<void> {
    this.#keepToken(await logIn(keyId, key, remember ? REMEMBERED_LOGIN : LOGIN), remember);
    this.phase = 'connecting';
    this.#wake?.();
  }

  /** Forgets the login, and everything that was done with it. */
  logOut(): void {
    this.#hide();
    this.#keepToken('', false);
    dropDraft();
    location.reload();
  }

  /** Stops everything that moves. Uses every connection there is, and succeeds if one does. */
  async stopAll(): Promise<void> {
    const robots = this.#connections();
    if (robots.length === 0) throw new Error('not connected');
    const stopped = Promise.any(robots.map((each) => each.stopAll())).catch((error: AggregateError) => {
      throw error.errors[0];
    });
    await withDeadline(stopped, STOP_TIMEOUT);
  }

  /** Asks for the status now. */
  refresh(): void {
    this.#wake?.();
  }

  async #poll(): Promise<void> {
    try {
      const connected = this.phase === 'online' ? undefined : this.#connect();
      const begin = performance.now();
      const [status] = await Promise.all([this.send('/status.json'), connected]);
      this.status = (await status.json()) as MachineStatus;
      this.resources = parseResources(this.status.resources, this.resources);
      this.statusAt = performance.now();
      this.latency = this.statusAt - begin;
      this.phase = 'online';
      this.problem = '';
      void this.#dialWebRTC();
    } catch (error) {
      this.problem = describeError(error);
      if (error instanceof HttpError && [401, 403].includes(error.status)) {
        this.#disconnect();
        this.phase = 'login';
      } else if (this.phase === 'online') {
        this.phase = 'lost';
      }
    }
  }

  async #connect(): Promise<void> {
    const generation = this.#generation;
    const access = (await (await this.send('/access.json')).json()) as Access & { time: number };
    this.#clockOffset = access.time - Date.now() / 1000;
    this.access = access;
    this.#webrtcAllowedAt = performance.now() + WEBRTC_DELAY;
    if (this.#direct === null) {
      // Not `dial`, which connects directly only to addresses that contain "local".
      const robot = new SessionClient((id) => endSession(this.#token, id), location.origin);
      await robot.connect({ ...this.#credentials('creds'), dialTimeout: DIAL_TIMEOUT });
      if (generation !== this.#generation) return;
      this.#direct = robot;
      this.#beginSession(robot);
    }
    this.robot = this.webrtc ?? this.#direct;
  }

  async #dialWebRTC(): Promise<void> {
    if (this.webrtc !== null || this.#dialing || performance.now() < this.#webrtcAllowedAt) return;
    if (typeof RTCPeerConnection === 'undefined' || !this.access?.webrtc) return;
    this.#dialing = true;
    const generation = this.#generation;
    const robot = new SessionClient((id) => endSession(this.#token, id));
    try {
      await robot.dial({
        ...this.#credentials('credentials'),
        host: location.host,
        signalingAddress: location.origin,
        iceServers: [],
        disableSessions: true,
        noReconnect: true,
        dialTimeout: WEBRTC_TIMEOUT,
      });
      if (generation !== this.#generation) {
        await robot.disconnect();
        return;
      }
      robot.on(MachineConnectionEvent.DISCONNECTED, () => this.#loseWebRTC(robot));
      this.webrtc = this.robot = robot;
      this.#beginSession(robot);
    } catch {
      // Calls go on over gRPC-web.
      this.#webrtcAllowedAt = performance.now() + WEBRTC_RETRY;
    } finally {
      this.#dialing = false;
    }
  }

  #connections(): SessionClient[] {
    return [this.#direct, this.webrtc].filter((each) => each !== null);
  }

  #beginSession({ session }: SessionClient): void {
    if (!this.mayControl) return;
    if (document.hidden) session.pause();
    else void session.resume();
  }

  /** Ends what this page moves: it is hidden, locked, frozen or closed, and nobody can stop it here. */
  #hide(): void {
    for (const { session } of this.#connections()) session.pause();
    this.#wake?.();
  }

  #show(): void {
    if (document.hidden) return;
    for (const each of this.#connections()) this.#beginSession(each);
    this.#wake?.();
  }

  #loseWebRTC(robot: SessionClient): void {
    robot.session.pause();
    if (this.webrtc !== robot) return;
    this.webrtc = null;
    this.robot = this.#direct;
    this.#wake?.();
  }

  #disconnect(): void {
    this.#generation += 1;
    const robot = this.webrtc;
    this.#hide();
    this.webrtc = this.robot = this.#direct = null;
    void robot?.disconnect();
  }

  #credentials<K extends 'creds' | 'credentials'>(key: K) {
    const credentials = { type: 'access-token', payload: this.#token } as const;
    return (this.#token ? { [key]: credentials } : {}) as { [each in K]?: typeof credentials };
  }

  #keepToken(token: string, remember: boolean): void {
    this.#token = token;
    sessionStorage.removeItem(TOKEN_KEY);
    localStorage.removeItem(TOKEN_KEY);
    if (token) (remember ? localStorage : sessionStorage).setItem(TOKEN_KEY, token);
  }

  #pause(): Promise<void> {
    const lost = this.phase === 'lost' || this.phase === 'connecting';
    const shown = lost ? LOST_POLL_INTERVAL : POLL_INTERVAL;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, document.hidden ? HIDDEN_POLL_INTERVAL : shown);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export function provideMachine(machine: Machine): void {
  setContext(CONTEXT, machine);
}

export function getMachine(): Machine {
  return getContext<Machine>(CONTEXT);
}

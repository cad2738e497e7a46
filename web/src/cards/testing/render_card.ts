import { render } from '@testing-library/svelte';
import type { Component } from 'svelte';
import { parseResources } from '../../machine/status';
import type { CardProps } from '../card_props';
import CardHost from './CardHost.svelte';
import { FakeMachine } from './fake_machine.svelte';

export interface FakeResource {
  /** The methods of the SDK's client that the card calls. */
  readonly client?: object;
  /** The methods that the card does not call by a client of the SDK. */
  readonly service?: object;
  readonly mayControl?: boolean;
}

/** Shows the card of a resource, and returns its machine. */
export function renderCard(card: Component<CardProps>, fullName: string, fake: FakeResource): FakeMachine {
  const machine = new FakeMachine(fake.client ?? {}, fake.service ?? {});
  machine.mayControl = fake.mayControl ?? true;
  const status = { name: fullName, model: 'fake', state: 'ready', reason: null, since: 0, depends_on: [] } as const;
  const [resource] = parseResources([status], []);
  render(CardHost, { card, machine: machine.machine, resource: resource! });
  return machine;
}

/** A reply of a service, which the page turns into JSON. */
export function asReply(json: object): { toJson: () => object } {
  return { toJson: () => json };
}

/** A call that goes on until the test answers it. */
export function pendingCall(): { call: () => Promise<void>; answer: () => void; fail: (error: Error) => void } {
  let answer = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => ([answer, fail] = [resolve, reject]));
  return { call: () => promise, answer, fail };
}

import type { Machine, Phase } from '../../machine/machine.svelte';

/** A machine with one resource. Cards find it in their context in place of the connection. */
export class FakeMachine {
  phase = $state<Phase>('online');
  mayControl = true;
  mayConfigure = false;
  access = { machine: 'fake' };
  resources = [];
  /** Makes clients of services that the SDK has no method for. */
  robot: { createServiceClient: () => object };

  #client: object;

  constructor(client: object, service: object) {
    this.#client = client;
    this.robot = { createServiceClient: () => service };
  }

  client(): object {
    return this.#client;
  }

  describeMover(): string {
    return '';
  }

  /** As the cards know it. They use no more of a machine than a fake has. */
  get machine(): Machine {
    return this as unknown as Machine;
  }
}

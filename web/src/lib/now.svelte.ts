import { createSubscriber } from 'svelte/reactivity';

const TICK = 500;

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, TICK);
  return () => clearInterval(timer);
});

/** `performance.now()`, read again twice a second where it is shown. */
export function now(): number {
  subscribe();
  return performance.now();
}

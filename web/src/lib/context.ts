import { getContext, setContext } from 'svelte';
import type { Router } from './router.svelte';

const ROUTER = Symbol('router');

export function provideRouter(router: Router): void {
  setContext(ROUTER, router);
}

export function getRouter(): Router {
  return getContext<Router>(ROUTER);
}

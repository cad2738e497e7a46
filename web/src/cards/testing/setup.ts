/** What jsdom lacks: it computes no sizes, draws nothing and has no media queries. */

import { configure } from '@testing-library/svelte';

// Enough for a computer that is busy with other tests.
configure({ asyncUtilTimeout: 10_000 });

globalThis.ResizeObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
globalThis.matchMedia = () => Object.assign(new EventTarget() as MediaQueryList, { matches: false });
HTMLCanvasElement.prototype.getContext = () => null;

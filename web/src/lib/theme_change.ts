import { createSubscriber } from 'svelte/reactivity';

/** Acts whenever the colors of the page change: by its own setting or the system's. Returns how to end that. */
export function watchTheme(act: () => void): () => void {
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', act);
  const setting = new MutationObserver(act);
  setting.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return () => {
    scheme.removeEventListener('change', act);
    setting.disconnect();
  };
}

/** In an effect: runs it again when the colors of the page change. */
export const trackTheme = createSubscriber(watchTheme);

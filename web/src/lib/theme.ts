export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'cogwork.theme';

export function loadTheme(): Theme {
  const found = THEMES.find((each) => each === localStorage.getItem(KEY)) ?? 'system';
  apply(found);
  return found;
}

export function saveTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  apply(theme);
}

function apply(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
}

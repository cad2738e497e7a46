/** The address of a view is in the fragment: `#/vision?camera=belt&service=eyes`. */

export interface Place {
  readonly view: string;
  readonly params: URLSearchParams;
}

export function parseFragment(fragment: string): Place {
  const [path = '', query = ''] = fragment.replace(/^#?\/?/, '').split(/\?(.*)/s);
  return { view: path || 'overview', params: new URLSearchParams(query) };
}

export function makeFragment(view: string, params: Iterable<readonly [string, string]> = []): string {
  const query = new URLSearchParams([...params].map(([key, value]) => [key, value])).toString();
  return `#/${view}${query ? `?${query}` : ''}`;
}

export class Router {
  place = $state.raw<Place>(parseFragment(location.hash));

  /** Follows the address bar. Returns a function that stops following it. */
  start(): () => void {
    const follow = () => (this.place = parseFragment(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }

  go(view: string, params: Iterable<readonly [string, string]> = []): void {
    location.hash = makeFragment(view, params);
  }

  /** Changes a parameter of this view without a new entry in the browser's history. */
  set(key: string, value: string | null): void {
    const params = new URLSearchParams(this.place.params);
    if (value === null || value === '') params.delete(key);
    else params.set(key, value);
    history.replaceState(null, '', makeFragment(this.place.view, params));
    this.place = { view: this.place.view, params };
  }
}

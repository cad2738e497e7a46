/** A token of the theme as a color that a canvas understands. Only a property in use has its value of the theme. */
export function tokenColor(element: HTMLElement, token: string): string {
  const before = element.style.color;
  element.style.color = `var(${token})`;
  const color = getComputedStyle(element).color;
  element.style.color = before;
  return color;
}

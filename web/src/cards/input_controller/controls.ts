/** The controls of a gamepad or a wheel, for showing. */

export interface Control {
  readonly name: string;
  readonly kind: 'axis' | 'button';
  readonly label: string;
}

export interface Stick {
  readonly label: string;
  readonly x: string;
  readonly y: string;
}

const STICKS: readonly Stick[] = [
  { label: 'left stick', x: 'AbsoluteX', y: 'AbsoluteY' },
  { label: 'right stick', x: 'AbsoluteRX', y: 'AbsoluteRY' },
  { label: 'hat', x: 'AbsoluteHat0X', y: 'AbsoluteHat0Y' },
];

export function describeControl(name: string): Control {
  const isAxis = name.startsWith('Absolute');
  return { name, kind: isAxis ? 'axis' : 'button', label: name.replace(/^(Absolute|Button)(?=.)/, '') };
}

/** The sticks of which both axes are there. */
export function findSticks(names: readonly string[]): readonly Stick[] {
  return STICKS.filter((each) => names.includes(each.x) && names.includes(each.y));
}

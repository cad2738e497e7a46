import { expect, it } from 'vitest';
import { describeControl, findSticks } from './controls';

it('tells axes from buttons', () => {
  expect(describeControl('AbsoluteX')).toEqual({ name: 'AbsoluteX', kind: 'axis', label: 'X' });
  expect(describeControl('ButtonSouth')).toEqual({ name: 'ButtonSouth', kind: 'button', label: 'South' });
  expect(describeControl('Button').label).toBe('Button');
});

it('makes a stick of two axes, and of nothing less', () => {
  expect(findSticks(['AbsoluteX', 'AbsoluteY', 'AbsoluteRX']).map((each) => each.label)).toEqual(['left stick']);
});

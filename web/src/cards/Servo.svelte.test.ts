import { fireEvent, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Servo from './Servo.svelte';
import { renderCard } from './testing/render_card';

function show() {
  const servo = { angle: 0, stops: 0 };
  const client = {
    getPosition: async () => servo.angle,
    isMoving: async () => false,
    move: async (angle: number) => void (servo.angle = angle),
    stop: async () => void (servo.stops += 1),
  };
  renderCard(Servo, 'rdk:component:servo/servo', { client });
  return { servo, user: userEvent.setup() };
}

it('moves when its slider is released', async () => {
  const { servo } = show();
  await screen.findByLabelText('the dial is at 0 degrees');
  const slider = screen.getByRole('slider');
  await fireEvent.input(slider, { target: { value: '90' } });
  await screen.findByText('moves to 90° when released');
  expect(servo.angle).toBe(0);
  await fireEvent.pointerUp(slider);
  await waitFor(() => expect(servo.angle).toBe(90));
  await screen.findByLabelText('the dial is at 90 degrees');
});

it('does not move when Escape ends the drag', async () => {
  const { servo } = show();
  const slider = screen.getByRole('slider');
  await fireEvent.input(slider, { target: { value: '90' } });
  await fireEvent.keyDown(window, { key: 'Escape' });
  await screen.findByText('drag and release to move');
  await fireEvent.pointerUp(slider);
  expect(servo.angle).toBe(0);
});

it('moves to a typed angle and to presets', async () => {
  const { servo, user } = show();
  const field = screen.getByLabelText('Angle in degrees');
  await user.clear(field);
  await user.type(field, '30');
  await user.click(screen.getByRole('button', { name: 'Move' }));
  await waitFor(() => expect(servo.angle).toBe(30));
  await user.click(screen.getByRole('button', { name: 'Move to 180 degrees' }));
  await waitFor(() => expect(servo.angle).toBe(180));
});

it('stops', async () => {
  const { servo, user } = show();
  await user.click(screen.getByRole('button', { name: '■ Stop' }));
  await waitFor(() => expect(servo.stops).toBe(1));
});

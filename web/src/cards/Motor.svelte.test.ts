import { fireEvent, screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Motor from './Motor.svelte';
import { pendingCall, renderCard } from './testing/render_card';

class FakeMotor {
  power = 0;
  position = 0;
  stops = 0;

  getProperties = async () => ({ positionReporting: true });
  isPowered = async () => [this.power !== 0, this.power];
  getPosition = async () => this.position;
  setPower = async (power: number) => void (this.power = power);
  goFor = async (_rpm: number, turns: number): Promise<void> => {
    this.position += turns;
  };
  goTo = async (_rpm: number, turns: number) => void (this.position = turns);
  resetZeroPosition = async (offset: number) => void (this.position = offset);
  stop = async () => {
    this.power = 0;
    this.stops += 1;
  };
}

function show(changes: Partial<FakeMotor> = {}, mayControl = true) {
  const motor = Object.assign(new FakeMotor(), changes);
  const machine = renderCard(Motor, 'rdk:component:motor/motor', { client: motor, mayControl });
  return { motor, machine, user: userEvent.setup() };
}

async function fill(label: string, value: string) {
  await fireEvent.input(screen.getByLabelText(label), { target: { value } });
}

it('turns while a button is held', async () => {
  const { motor } = show();
  await fill('Power while held, in percent', '40');
  await fireEvent.pointerDown(screen.getByRole('button', { name: 'Forward while held' }), { button: 0 });
  await waitFor(() => expect(motor.power).toBe(0.4));
  await screen.findByText('moving');
  await fireEvent.pointerUp(window);
  await waitFor(() => expect(motor.power).toBe(0));
  await fireEvent.pointerDown(screen.getByRole('button', { name: 'Backward while held' }), { button: 0 });
  await waitFor(() => expect(motor.power).toBe(-0.4));
});

it.each([
  ['the window loses the focus', () => fireEvent.blur(window)],
  ['the page is hidden', () => fireEvent(document, new Event('visibilitychange'))],
])('stops when %s', async (_, leave) => {
  const { motor } = show();
  await fireEvent.pointerDown(screen.getByRole('button', { name: 'Forward while held' }), { button: 0 });
  await waitFor(() => expect(motor.power).toBe(0.5));
  await leave();
  await waitFor(() => expect(motor.power).toBe(0));
});

it('stops when the machine is lost, and disables what moves it', async () => {
  const { motor, machine } = show();
  const forward = screen.getByRole('button', { name: 'Forward while held' });
  await fireEvent.pointerDown(forward, { button: 0 });
  await waitFor(() => expect(motor.power).toBe(0.5));
  machine.phase = 'lost';
  await waitFor(() => expect(motor.power).toBe(0));
  expect(forward).toHaveProperty('disabled', true);
  expect(screen.getByRole('button', { name: 'Go for' })).toHaveProperty('disabled', true);
  expect(screen.getByRole('button', { name: '■ Stop' })).toHaveProperty('disabled', false);
});

it('goes for turns and to a position', async () => {
  const { motor, user } = show();
  await fill('Turns', '2');
  await user.click(screen.getByRole('button', { name: 'Go for' }));
  await waitFor(() => expect(motor.position).toBe(2));
  await fill('Turns', '0.5');
  await user.click(await screen.findByRole('button', { name: 'Go to' }));
  await waitFor(() => expect(motor.position).toBe(0.5));
  await screen.findByText(/^0\.500/);
  await user.click(screen.getByRole('button', { name: 'Set zero' }));
  await waitFor(() => expect(motor.position).toBe(0));
});

it('follows its slider until it is released', async () => {
  const { motor } = show();
  const slider = screen.getByRole<HTMLInputElement>('slider');
  await fireEvent.pointerDown(slider);
  await fireEvent.input(slider, { target: { value: '100' } });
  await waitFor(() => expect(motor.power).toBe(1));
  await fireEvent.pointerUp(window);
  await waitFor(() => expect(motor.power).toBe(0));
  expect(slider.value).toBe('0');
});

it('shows no error when a move is stopped', async () => {
  const move = pendingCall();
  const { motor, user } = show({ goFor: move.call });
  await user.click(screen.getByRole('button', { name: 'Go for' }));
  await user.click(screen.getByRole('button', { name: '■ Stop' }));
  move.fail(new Error('interrupted'));
  // What was not answered before the stop is stopped once more.
  await waitFor(() => expect(motor.stops).toBe(2));
  await screen.findByText('still');
  expect(screen.queryByRole('alert')).toBeNull();
});

it('shows why a command failed', async () => {
  const { user } = show({ goFor: async () => Promise.reject(new Error('the motor is unplugged')) });
  await user.click(screen.getByRole('button', { name: 'Go for' }));
  expect((await screen.findByRole('alert')).textContent).toBe('the motor is unplugged');
});

it('shows a viewer only values', async () => {
  show({ position: 1.5 }, false);
  await screen.findByText(/^1\.5/);
  expect(screen.queryAllByRole('button')).toEqual([]);
  expect(screen.queryByRole('slider')).toBeNull();
});

import { screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Switch from './Switch.svelte';
import { pendingCall, renderCard } from './testing/render_card';

class FakeSwitch {
  position = 0;
  labels: string[] = ['off', 'slow', 'fast'];

  getPosition = async () => this.position;
  getNumberOfPositions = async () => [this.labels.length, this.labels];
  setPosition = async (position: number): Promise<void> => {
    this.position = position;
  };
}

function show(changes: Partial<FakeSwitch> = {}, mayControl = true) {
  const device = Object.assign(new FakeSwitch(), changes);
  renderCard(Switch, 'rdk:component:switch/switch', { client: device, mayControl });
  return { device, user: userEvent.setup() };
}

it('is set by the label of a position', async () => {
  const { device, user } = show();
  await user.click(await screen.findByRole('button', { name: 'fast' }));
  await waitFor(() => expect(device.position).toBe(2));
  await screen.findByRole('button', { name: 'fast', pressed: true });
  await screen.findByText('2 of 0 … 2');
});

it('follows what others set', async () => {
  const { device } = show();
  await screen.findByRole('button', { name: 'off', pressed: true });
  device.position = 1;
  await screen.findByRole('button', { name: 'slow', pressed: true });
});

it('is set by number if it has many positions', async () => {
  const { device, user } = show({ labels: Array.from({ length: 30 }, (_, index) => `position ${index}`) });
  const field = await screen.findByLabelText('Position');
  await user.clear(field);
  await user.type(field, '17');
  await user.click(screen.getByRole('button', { name: 'Set' }));
  await waitFor(() => expect(device.position).toBe(17));
});

it('takes no other position while it is being set, and shows why that failed', async () => {
  const calls: number[] = [];
  const move = pendingCall();
  const { user } = show({ setPosition: (position) => (calls.push(position), move.call()) });
  await user.click(await screen.findByRole('button', { name: 'fast' }));
  const slow = screen.getByRole('button', { name: 'slow' });
  await waitFor(() => expect(slow.getAttribute('aria-disabled')).toBe('true'));
  await user.click(slow);
  move.fail(new Error('the switch is stuck'));
  expect((await screen.findByRole('alert')).textContent).toBe('the switch is stuck');
  expect(slow.getAttribute('aria-disabled')).toBeNull();
  expect(calls).toEqual([2]);
});

it('shows a viewer only the position', async () => {
  show({ position: 1 }, false);
  await screen.findByText('slow');
  expect(screen.queryAllByRole('button')).toEqual([]);
});

import { screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Gripper from './Gripper.svelte';
import { renderCard } from './testing/render_card';

class FakeGripper {
  isHolding = false;
  stops = 0;

  isMoving = async () => false;
  open = async () => void (this.isHolding = false);
  grab = async (): Promise<unknown> => (this.isHolding = true);
  stop = async () => void (this.stops += 1);
  isHoldingSomething: () => Promise<object> = async () => ({ isHoldingSomething: this.isHolding });
}

function show(changes: Partial<FakeGripper> = {}, mayControl = true) {
  const gripper = Object.assign(new FakeGripper(), changes);
  const machine = renderCard(Gripper, 'rdk:component:gripper/gripper', { client: gripper, service: gripper, mayControl });
  return { gripper, machine, user: userEvent.setup() };
}

it('grabs and opens', async () => {
  const { user } = show();
  await screen.findByText('holds nothing');
  await user.click(screen.getByRole('button', { name: 'Grab' }));
  await screen.findByText('holds something');
  await user.click(screen.getByRole('button', { name: 'Open' }));
  await screen.findByText('holds nothing');
});

it('says that it cannot tell what it holds', async () => {
  show({ isHoldingSomething: async () => Promise.reject(new Error('not implemented')) });
  await screen.findByText('does not report what it holds');
  expect(screen.queryByRole('alert')).toBeNull();
});

it('shows why it did not grab', async () => {
  const { user } = show({ grab: async () => Promise.reject(new Error('no air')) });
  await user.click(screen.getByRole('button', { name: 'Grab' }));
  expect((await screen.findByRole('alert')).textContent).toBe('no air');
});

it('can be stopped, but not moved, while the machine is lost', async () => {
  const { gripper, machine, user } = show();
  machine.phase = 'lost';
  await waitFor(() => expect(screen.getByRole('button', { name: 'Grab' })).toHaveProperty('disabled', true));
  await user.click(screen.getByRole('button', { name: '■ Stop' }));
  await waitFor(() => expect(gripper.stops).toBe(1));
});

it('shows a viewer only what it holds', async () => {
  show({ isHolding: true }, false);
  await screen.findByText('holds something');
  expect(screen.queryAllByRole('button')).toEqual([]);
});

import { screen, waitFor } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Button from './Button.svelte';
import { asReply, pendingCall, renderCard } from './testing/render_card';

function show(push: () => Promise<void>, mayControl = true, status: object = {}) {
  const service = { getStatus: async () => ({ result: asReply(status) }) };
  renderCard(Button, 'rdk:component:button/button', { client: { push }, service, mayControl });
  return userEvent.setup();
}

it('is pushed once for each press', async () => {
  let pushes = 0;
  const user = show(async () => void (pushes += 1));
  await user.click(screen.getByRole('button', { name: 'Push' }));
  await screen.findByText('Pushed once from this page.');
  await user.click(screen.getByRole('button', { name: 'Push' }));
  await screen.findByText('Pushed 2 times from this page.');
  expect(pushes).toBe(2);
});

it('keeps the focus, and is not pushed again, while it is busy', async () => {
  let pushes = 0;
  const { call, answer } = pendingCall();
  const user = show(() => ((pushes += 1), call()));
  const button = screen.getByRole('button', { name: 'Push' });
  await user.click(button);
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('true'));
  await user.keyboard('{Enter}');
  expect(document.activeElement).toBe(button);
  answer();
  await screen.findByText('Pushed once from this page.');
  expect(pushes).toBe(1);
});

it('does not count a push that failed', async () => {
  const user = show(async () => Promise.reject(new Error('the button is stuck')));
  await user.click(screen.getByRole('button', { name: 'Push' }));
  expect((await screen.findByRole('alert')).textContent).toBe('the button is stuck');
  expect(screen.queryByText(/^Pushed/)).toBeNull();
});

it('shows a viewer only what it reports', async () => {
  show(async () => {}, false, { pushes: 3 });
  await screen.findByText('pushes');
  expect(screen.queryByRole('button')).toBeNull();
});

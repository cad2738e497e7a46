import { fireEvent, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import Generic from './Generic.svelte';
import { asReply, renderCard } from './testing/render_card';

interface Request {
  toJson: () => unknown;
}

function show(doCommand: (request: Request) => Promise<object>, mayControl = true) {
  renderCard(Generic, 'rdk:component:generic/generic', { service: { doCommand }, mayControl });
  return userEvent.setup();
}

const echo = async (request: Request) => asReply({ result: (request.toJson() as { command: object }).command });

async function write(text: string) {
  await fireEvent.input(screen.getByLabelText('Command'), { target: { value: text } });
}

it('sends commands, shows their results and remembers them', async () => {
  const [one, two] = ['{"say": "one"}', '{"say": "two", "to": [1, null]}'];
  const user = show(echo);
  for (const [command, word] of [
    [one, /"one"/],
    [two, /"two"/],
  ] as const) {
    await write(command);
    await user.click(screen.getByRole('button', { name: 'Send' }));
    await screen.findByText(/^answered in/);
    expect(screen.getByRole('region', { name: 'Result' }).textContent).toMatch(word);
  }
  const field = screen.getByLabelText<HTMLTextAreaElement>('Command');
  await user.click(field);
  const seen = [];
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowDown']) {
    await user.keyboard(`{${key}}`);
    seen.push(field.value);
  }
  expect(seen).toEqual([two, one, two]);
});

it('does not send what is not JSON', async () => {
  show(echo);
  await write('{"say": }');
  await screen.findByText(/not JSON/);
  expect(screen.getByRole('button', { name: 'Send' })).toHaveProperty('disabled', true);
});

it('shows why a command failed', async () => {
  const user = show(async () => Promise.reject(new Error('there is no such command')));
  await user.click(screen.getByRole('button', { name: 'Send' }));
  expect((await screen.findByRole('alert')).textContent).toBe('there is no such command');
  expect(screen.queryByRole('region', { name: 'Result' })).toBeNull();
});

it('lets a viewer send nothing', () => {
  show(echo, false);
  screen.getByText('A viewer may send no commands.');
  expect(screen.queryByRole('button')).toBeNull();
});

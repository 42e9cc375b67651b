/** Tests checkpoints of the workspace in the middle of a turn, and turns that resume after the loss of a machine. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { describe, expect, test } from 'vitest';
import { ended, fake, of, scripted, sh, start } from '../test/run.ts';

const keeps = { max_workspace_bytes: 100_000_000 };
const checkpoints = { ...keeps, checkpoint_seconds: 1 };
const loss: AgentTask['loss'] = { message: 'The machine burnt.', done_blocks: 1, record: 'I pushed the branch.' };

describe('checkpoints', () => {
  test('are sent in the middle of a turn with their position in the conversation, but only if files have changed', async () => {
    await start({ ...sh('echo a > file', 'until [ -e stop ]; do sleep 0.05; done'), ...checkpoints });
    await fake.until(() => of('checkpoint').filter(({ state }) => state === 'unchanged').length > 0);
    const [begun] = of('checkpoint');
    expect(begun).toMatchObject({ number: 1, state: 'begun', turn: 1, done_blocks: 1 });
    expect(fake.workspaces.map(({ turn, checkpoint }) => [turn, checkpoint])).toEqual([[1, 1]]);
    const result = of('action_result')[0];
    expect(result?.seq, 'the result of the command that is done').toBeLessThan(begun?.seq ?? 0);
    fake.cancel();
    await ended();
    expect(fake.workspaces.at(-1), 'the end of the turn').toMatchObject({ turn: 1, checkpoint: null });
  });

  test('are not taken if the task does not ask for them', async () => {
    await start({ ...sh('echo a > file; sleep 2.5'), ...keeps });
    await ended();
    expect(of('checkpoint')).toEqual([]);
  });
});

describe('a turn whose machine was lost', () => {
  test('does not repeat a runbook command whose effects are in the checkpoint', async () => {
    await start({ ...sh('echo one', 'echo two'), workspace: { kind: 'empty' }, loss });
    await ended();
    expect(of('action').map(({ input }) => input)).toEqual([{ command: 'echo two' }]);
    expect(fake.text()).toContain('The first 1 of 2 commands were done before');
    expect(of('notice')[0]).toMatchObject({
      name: 'machine_lost',
      data: { reason: 'The machine burnt.', files: 'lost' },
    });
  });

  test('runs all commands again if the files could not be restored', async () => {
    await start({ ...sh('echo one', 'echo two'), workspace: { kind: 'missing' }, loss });
    await ended();
    expect(of('action')).toHaveLength(2);
    expect(fake.text()).toContain('The commands run again from the first.');
  });

  test('tells the harness which work may have been lost', async () => {
    const conversation = { kind: 'text' as const, text: 'Before it.' };
    const task = { ...scripted('echo'), prompt: 'Do it.', workspace: { kind: 'missing' as const }, loss, conversation };
    await start(task);
    await ended();
    const said = fake.text();
    for (const part of [
      'Before it.',
      'was lost in the middle of your turn',
      'No files were saved',
      'I pushed the branch.',
    ])
      expect(said).toContain(part);
    expect(said).toContain(String.raw`The task:\n\nDo it.`);
  });
});

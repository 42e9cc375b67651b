import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { describe, expect, test } from 'vitest';
import { openTestLoops, results } from '../../../test/loop.ts';

const { models, workspace, engine } = await openTestLoops();

describe('the loop asks a person', () => {
  const call = (name: string, input: Record<string, unknown>) => ({ toolCalls: [{ name, input }] });
  const told = () => models.requests.at(-1)?.conversation?.toolResults;
  const open = (decided: AgentEventBody[]) => {
    const last = decided.at(-1);
    return last?.type === 'blocked' ? last.request.request_id : undefined;
  };
  const followUp = (answers: string | undefined, decision: 'approve' | 'deny' | undefined, message = '') => ({
    type: 'follow_up' as const,
    id: 'f1',
    position: 1,
    message,
    ...(answers ? { answers } : {}),
    ...(decision ? { decision } : {}),
  });

  test('before the loop runs a command or changes a file, but not before it reads a file', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'read', input: { path: '.' } },
          { name: 'shell', input: { command: 'touch allowed' } },
          { name: 'write', input: { path: 'denied', content: 'x' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, approvals, decided, spoken, until } = engine('anthropic', {}, 'ask');
    const playing = turn('Hi.');
    await until(() => open(decided) !== undefined);
    expect(existsSync(join(workspace(), 'allowed'))).toBe(false);
    approvals.answer(followUp(open(decided), 'approve'));
    await until(() => decided.filter(({ type }) => type === 'blocked').length === 2);
    approvals.answer(followUp(open(decided), 'deny', 'write nothing'));
    expect((await playing).verdict.success).toBe(true);
    expect(existsSync(join(workspace(), 'allowed'))).toBe(true);
    expect(existsSync(join(workspace(), 'denied'))).toBe(false);
    expect(results(spoken)).toEqual(['completed', 'in_progress', 'completed', 'failed']);
    expect(told()?.[2]).toContain('denied by the user, who says: write nothing');
  });

  test('when the model calls ask_user, and returns the answer as the result', async () => {
    models.script([
      call('ask_user', { question: 'Which?' }),
      call('ask_user', { question: 'Sure?' }),
      call('ask_user', { question: 'Really?' }),
      { text: ['ok'] },
    ]);
    const { turn, approvals, decided, spoken, until } = engine();
    const playing = turn('Hi.');
    const heard: unknown[] = [];
    const waits = () => spoken.flatMap(({ _meta }) => (_meta?.runyard as { waits?: boolean } | undefined)?.waits ?? []);
    for (const [decision, message] of [
      [undefined, 'the red one'],
      ['approve', ''],
      ['deny', 'look again'],
    ] as const) {
      await until(() => open(decided) !== undefined);
      heard.push(told());
      expect(waits().at(-1), "the time until the answer is the person's").toBe(true);
      approvals.answer(followUp(open(decided), decision, message));
    }
    await playing;
    expect(waits()).toEqual([true, false, true, false, true, false]);
    expect([...heard.slice(1), told()]).toEqual([['the red one'], ['yes'], ['no: look again']]);
  });

  test('unless the policy denies the action, and gives the model the denial', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'shell', input: { command: 'touch x' } },
          { name: 'ask_user', input: { question: 'May I?' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, decided } = engine('anthropic', {}, 'auto-deny');
    await turn('Hi.');
    expect(existsSync(join(workspace(), 'x'))).toBe(false);
    expect(told()?.[0]).toContain('auto-deny');
    expect(told()?.[1]).toContain('decide yourself');
    expect(decided.map((event) => event.type === 'decided' && event.by)).toEqual(['policy', 'policy']);
  });

  test('and records that the action was not done if the wait for the answer is aborted', async () => {
    models.script([call('shell', { command: 'touch x' }), { text: ['go on'] }]);
    let memory = '';
    const remember = async (kept: string) => {
      memory = kept;
    };
    const { turn, decided, abort, until } = engine('anthropic', { remember }, 'ask');
    const playing = turn('Hi.');
    await until(() => open(decided) !== undefined);
    abort();
    expect((await playing).stopReason).toBe('cancelled');
    expect(existsSync(join(workspace(), 'x'))).toBe(false);
    models.script([{ text: ['I see.'] }]);
    await engine('anthropic', { memory }, 'ask').turn('Go on.');
    const requestText = JSON.stringify(models.requests.at(-1)?.body);
    expect(requestText).toContain('not done: the turn ended before the user had answered');
  });
});

import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { expect, test } from 'vitest';
import { withDiffTexts } from './diff-text.ts';
import { sessionUpdates } from './session-updates.ts';

const textOf = (update: unknown) => (update as { content: [{ content: { text: string } }] }).content[0].content.text;
const diff = (oldText: string | null, newText: string) => ({
  toolCallId: 't1',
  content: [{ type: 'diff', path: '/workspace/a.txt', oldText, newText }],
});

test('the text of a diff shows a changed file as a unified diff, and a new file as added lines', () => {
  const header = '--- /workspace/a.txt\n+++ /workspace/a.txt\n';
  expect(textOf(withDiffTexts(diff('a\nb\n', 'a\nc\n')))).toBe(`${header}@@ -1,2 +1,2 @@\n a\n-b\n+c\n`);
  expect(textOf(withDiffTexts(diff(null, 'a\n')))).toBe(`${header}@@ -0,0 +1,1 @@\n+a\n`);
});

test('a request about a change of files without arguments shows the whole change, and the conversation shows its path', () => {
  const events: AgentEventBody[] = [];
  const updates = sessionUpdates({ emit: (event) => events.push(event), stepId: () => 'step', mcpServers: [] });
  const lines = Array.from({ length: 20_000 }, (_, line) => `${line}\n`).join('');
  const call = { sessionUpdate: 'tool_call', kind: 'edit', title: 'Editing files', status: 'in_progress' };
  updates.update(withDiffTexts({ ...diff(null, lines), ...call }));
  const asked = updates.permission({ toolCallId: 't1', title: 'Edit files' });
  expect(asked?.input).toMatchObject({ path: '/workspace/a.txt', diff: expect.stringMatching(/\+19999\n$/) });
  expect(events).toContainEqual(expect.objectContaining({ type: 'action', input: { path: '/workspace/a.txt' } }));
  // Later changes of the call are its result, and its arguments have priority over its diffs.
  updates.update({ ...call, toolCallId: 't2', rawInput: { file_path: 'b' } });
  updates.update(withDiffTexts({ ...diff('a', 'b'), sessionUpdate: 'tool_call_update', toolCallId: 't2' }));
  expect(updates.permission({ toolCallId: 't2' })?.input).toEqual({ file_path: 'b' });
});

test('a request whose diff comes after the title shows the diff, and the conversation has the action once', () => {
  const events: AgentEventBody[] = [];
  const updates = sessionUpdates({ emit: (event) => events.push(event), stepId: () => 'step', mcpServers: [] });
  const call = { toolCallId: 't1', kind: 'edit', title: 'Writing to a.txt' };
  updates.update({ ...call, sessionUpdate: 'tool_call', status: 'in_progress' });
  const asked = updates.permission(withDiffTexts({ ...diff(null, 'a\n'), ...call }));
  expect(asked?.input).toMatchObject({ path: '/workspace/a.txt', diff: expect.stringContaining('+a\n') });
  expect(events.filter(({ type }) => type === 'action')).toMatchObject([{ input: { title: 'Writing to a.txt' } }]);
});

test('a request about a change of files that is too large to compare has both texts', () => {
  const { changes } = withDiffTexts(diff('x'.repeat(600_000), 'y')) as { changes: object[] };
  expect(changes).toEqual([{ path: '/workspace/a.txt', before: 'x'.repeat(600_000), after: 'y' }]);
});

test('the text of a diff is only the name of the file if the file is too large to compare', () => {
  expect(textOf(withDiffTexts(diff('x'.repeat(600_000), 'y')))).toBe('[diff of /workspace/a.txt]');
});

test.each([undefined, 7, { content: 'x' }, { content: [null, 7, { type: 'diff' }] }])(
  'reads the diff text %j',
  (update) => {
    expect(() => withDiffTexts(update)).not.toThrow();
  },
);

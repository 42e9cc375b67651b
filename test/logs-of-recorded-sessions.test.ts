/** Shows recorded sessions of the real programs as `runyard logs` does. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { expect, test } from 'vitest';
import { withDiffTexts } from '../packages/agent/src/harness/diff-text.ts';
import { sessionUpdates } from '../packages/agent/src/harness/session-updates.ts';
import { createLiveView } from '../packages/cli/src/commands/runs/view/view.ts';
import { noColours } from '../packages/cli/src/terminal/colours.ts';

/** Returns the lines that `logs` prints of a recorded session. */
function logsOf(type: string): string[] {
  const view = createLiveView(noColours);
  let text = '';
  const at = { seq: 1, occurred_at: '2026-01-01T00:00:00Z' };
  const emit: Parameters<typeof sessionUpdates>[0]['emit'] = (event) => {
    text += view.render({ type: 'conversation', event: { ...event, ...at } });
  };
  const updates = sessionUpdates({ emit, stepId: () => 'step', mcpServers: [] });
  updates.startTurn();
  const file = path.join(import.meta.dirname, '../packages/agent/test/sessions', `${type}.jsonl`);
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const { method, params } = JSON.parse(line) as { method?: string; params?: Record<string, unknown> };
    if (method === 'session/update') updates.update(withDiffTexts(params?.update));
    if (method === 'session/request_permission') updates.permission(withDiffTexts(params?.toolCall));
  }
  updates.endTurn('the program ended its turn without a result');
  return (text + view.end()).split('\n');
}

test.each(presetTypes)('the logs show each command and each change of %s once', (type) => {
  const lines = logsOf(type);
  const actions = lines.filter((line) => /^[$●] /.test(line));
  expect(actions).toHaveLength(2);
  expect(actions[0]).toContain('echo hello; exit 3');
  expect(actions[1]).toContain('a.txt');
  expect(lines.filter((line) => line.includes('+one')).length).toBeLessThanOrEqual(1);
  expect(lines.filter((line) => /^ {2}[✓✗]/.test(line))).toHaveLength(2);
});

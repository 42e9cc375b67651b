/**
 * Replays recorded sessions of the real programs (`bin/test-harnesses` records them), and checks the events into which the agent converts
 * them.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { describe, expect, test } from 'vitest';
import { asObject } from '../acp/tool-output.ts';
import { withDiffTexts } from './diff-text.ts';
import { sessionUpdates } from './session-updates.ts';

const folder = path.join(import.meta.dirname, '../../test/sessions');
const fileOf = (type: string) => path.join(folder, `${type}.jsonl`);
const recorded = presetTypes.filter((type) => existsSync(fileOf(type)));

/** Replays a recorded session, approves each permission request in it, and returns the events. */
function replay(type: string): AgentEventBody[] {
  const events: AgentEventBody[] = [];
  const updates = sessionUpdates({ emit: (event) => events.push(event), stepId: () => 'step', mcpServers: [] });
  updates.startTurn();
  for (const line of readFileSync(fileOf(type), 'utf8').trimEnd().split('\n')) {
    const { method, params } = JSON.parse(line) as { method?: string; params?: Record<string, unknown> };
    if (method === 'session/update') updates.update(withDiffTexts(params?.update));
    if (method === 'session/request_permission') updates.permission(withDiffTexts(params?.toolCall));
  }
  updates.endTurn('the harness ended its turn without reporting the result');
  return events;
}

/** Returns the conversation as a person sees it: joined texts and actions with their results, without ids and times. */
function conversationOf(type: string): readonly Record<string, unknown>[] {
  const shown: Record<string, unknown>[] = [];
  const outputs = new Map<string, string>();
  for (const event of replay(type)) {
    const last = shown.at(-1);
    if (event.type === 'text' && last?.type === 'text') last.text += event.text;
    else if (event.type === 'text') shown.push({ type: 'text', text: event.text });
    else if (event.type === 'action') {
      const known = shown.find(({ id }) => id === event.action_id);
      const { action_id: id, category, name, input } = event;
      if (known) known.input = input;
      else shown.push({ type: 'action', id, category, name, input });
    } else if (event.type === 'action_output') {
      outputs.set(event.action_id, (outputs.get(event.action_id) ?? '') + event.text);
    } else if (event.type === 'action_result') {
      const output = event.output ?? outputs.get(event.action_id) ?? '';
      const { state, exit_code } = event;
      shown.push({ type: 'result', state, output, ...(exit_code === undefined ? {} : { exit_code }) });
    } else if (event.type === 'notice') shown.push({ type: 'notice', name: event.name });
  }
  return shown.map(({ id: _, ...each }) => each);
}

test('every preset has a recorded session', () => {
  expect(recorded).toEqual(presetTypes);
});

describe.each(recorded)('the recorded session of %s', (type) => {
  test('has the same conversation as its golden file', async () => {
    const text = `${JSON.stringify(conversationOf(type), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(path.join(folder, `${type}.golden.json`));
  });

  test('has texts, and between them two actions with their results', () => {
    const shown = conversationOf(type).filter((each) => each.type !== 'notice');
    expect(shown.map((each) => each.type)).toEqual(['text', 'action', 'result', 'text', 'action', 'result', 'text']);
    expect(shown[1]).toMatchObject({ category: 'command' });
    expect(JSON.stringify(asObject(shown[1])?.input)).toContain('echo hello; exit 3');
    expect(shown[5]).toMatchObject({ state: 'completed' });
  });
});

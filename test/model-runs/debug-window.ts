/**
 * Tests that the sandbox stays available for follow-ups after a failed setup, with runbooks and with the AI SDK loop against fake
 * models.
 */
import { createClient } from '@runyard/client';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import type { FakeConversation } from '../fakes/models/turns.ts';
import type { FakeModels } from '../fakes/models.ts';
import { kindsOfTurn } from '../support/run-kinds.ts';
import { eventually, type System } from '../support/system.ts';

/** Returns the next answer of a fake model, which runs only the commands in the user's latest message. */
function obedient(conversation: FakeConversation) {
  const said = conversation.prompt.split(/The user (?:now )?says:/).at(-1) ?? '';
  const commands = [...said.matchAll(/run `([^`]+)`/g)].map(([, command]) => command);
  return conversation.turnOfPrompt === 0
    ? { toolCalls: [{ name: 'shell', input: { command: commands.join('; ') } }] }
    : { text: ['Done.'] };
}

export const describeDebugWindow = (system: System, models: FakeModels) =>
  describe('failed setups', () => {
    beforeEach(() => models.script(obedient));

    const environment = (minutes: number, command: string) => ({
      config: { name: 'Broken', failure_session_retention_minutes: minutes, setup_commands: [command] },
    });
    const conversation = async (runId: string) =>
      JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(() => ''));
    const until = (run: RunItem) => run.status_message?.session_debug_until ?? '';

    test.each(kindsOfTurn(0))(
      'let follow-ups run in the sandbox while the run stays FAILED, and a rerun uses the repaired environment ($kind)',
      async ({ config, say }) => {
        const { uid } = await system.call<{ uid: string }>(
          'POST',
          '/agent/environments',
          environment(5, 'echo left-$((40+1)) > file; exit 5'),
          201,
        );
        const runId = await system.createRun(say('echo task-$((40+2))'), {
          config: { ...config, environment_id: uid },
        });
        const failed = await system.untilEnded(runId);
        expect(failed).toMatchObject({
          state: 'FAILED',
          status_message: { error_code: 'environment_setup_failed' },
          is_sandbox_running: true,
        });
        await system.call('POST', `/agent/runs/${runId}/followups`, { message: say('cat file; echo seen-$((1+1))') });
        await eventually('the answer', async () => (await conversation(runId)).includes('seen-2'));
        const after = await system.until(
          runId,
          (run) => until(run) > until(failed) && Date.parse(until(run)) < Date.now() + 301_000,
        );
        expect(after).toMatchObject({
          state: 'FAILED',
          status_message: { message: failed.status_message?.message, error_code: 'environment_setup_failed' },
          session_id: failed.session_id,
          is_sandbox_running: true,
        });
        expect(await conversation(runId)).toContain('left-41');

        // The run itself still has the old revision of its environment, but a rerun uses the new revision.
        await system.call('PUT', `/agent/environments/${uid}`, environment(0, 'true'));
        const again = await system.call<{ run_id: string }>('POST', `/agent/runs/${runId}/rerun`, {});
        const done = await system.untilEnded(again.run_id);
        expect(done).toMatchObject({ state: 'SUCCEEDED' });
        expect(await conversation(again.run_id)).toContain('task-42');
      },
    );

    test.each(kindsOfTurn(1))(
      'let the agent ask for approval in a follow-up and run the approved action, and readers of the stream get the events of both ($kind)',
      async ({ config, say }) => {
        const { uid } = await system.call<{ uid: string }>(
          'POST',
          '/agent/environments',
          environment(5, 'exit 5'),
          201,
        );
        const runId = await system.createRun(say('echo task-$((40+2))'), {
          config: { ...config, environment_id: uid, approval_policy: 'ask' },
        });
        const failed = await system.untilEnded(runId);
        const client = createClient({ baseUrl: system.baseUrl(), apiKey: system.key });
        let lastEventId = '';
        /** Connects again after the last id that this reader has received. Returns the events up to the end of the stream, as JSON. */
        const rest = async () => {
          const events: LiveEvent[] = [];
          for await (const { id, event } of client.streamRunEvents(runId, { lastEventId })) {
            lastEventId = id;
            events.push(event);
          }
          return JSON.stringify(events);
        };
        expect(await rest()).toContain('FAILED');
        await system.call('POST', `/agent/runs/${runId}/followups`, { message: say('echo seen-$((1+1))') });
        expect(await rest()).toContain('"type":"blocked"');
        const asking = await system.run(runId);
        expect(asking).toMatchObject({
          state: 'FAILED',
          status_message: { message: failed.status_message?.message, error_code: 'environment_setup_failed' },
          blocked_on: { kind: 'permission', title: 'echo seen-$((1+1))' },
        });
        expect(until(asking) > until(failed)).toBe(true);
        expect(await conversation(runId)).not.toContain('seen-2');
        const answer = { decision: 'approve', request_id: asking.blocked_on?.request_id };
        await system.call('POST', `/agent/runs/${runId}/followups`, answer);
        expect(await rest()).toContain('seen-2');
        const after = await system.run(runId);
        expect(after).toMatchObject({ state: 'FAILED', session_id: failed.session_id, is_sandbox_running: true });
        expect(after).not.toHaveProperty('blocked_on');
      },
    );
  });

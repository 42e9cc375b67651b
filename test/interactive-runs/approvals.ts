/**
 * Tests runs that wait for an answer of a person, in real sandboxes: runbooks, runs with the AI SDK loop against fake models, and runs
 * with an ACP harness.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { defaultScript, type FakeConversation } from '../fakes/models/turns.ts';
import type { FakeModels } from '../fakes/models.ts';
import { isLong } from '../support/long.ts';
import { oneModel, runbook, runKinds, testsOfKind } from '../support/run-kinds.ts';
import { killHard, type System } from '../support/system.ts';

/** Returns the next answer of a fake model, which runs a command again after a person has approved it, and gives up after a denial. */
function obedient(conversation: FakeConversation) {
  const { prompt, turnOfPrompt } = conversation;
  if (turnOfPrompt === 0 && prompt.includes('The user denied it')) return { text: ['Then not.'] };
  const approved = prompt.includes('The user approved it') ? /"command":"([^"]+)"/.exec(prompt)?.[1] : undefined;
  if (turnOfPrompt === 0 && approved) return { toolCalls: [{ name: 'shell', input: { command: approved } }] };
  return defaultScript(conversation);
}

export const describeApprovals = (system: System, models: FakeModels) =>
  describe('the system (approvals)', () => {
    beforeEach(() => models.script(obedient));

    interface Block {
      type: string;
      name?: string;
      state?: string;
      output?: { text: string };
      data?: { request?: { title?: string }; decision?: string; by?: string; message?: string };
    }

    const blocksOf = async (runId: string): Promise<Block[]> => {
      const { steps } = await system.call<{ steps: { messages: { content: Block[] }[] }[] }>(
        'GET',
        `/agent/runs/${runId}/conversation`,
      );
      return steps.flatMap((step) => step.messages.flatMap((message) => message.content));
    };
    const textOf = async (runId: string) => JSON.stringify(await blocksOf(runId));
    const resultsOf = async (runId: string) =>
      (await blocksOf(runId)).flatMap(({ type, state }) => (type === 'action_result' ? [state] : []));
    const decisionsOf = async (runId: string) =>
      (await blocksOf(runId)).flatMap(({ type, data }) =>
        type === 'event' && data?.request ? [`${data.decision ?? 'open'} by ${data.by ?? 'nobody'}`] : [],
      );
    const typesOf = async (runId: string) => {
      const { events } = await system.call<{
        events: { event_type: string; execution_id?: number; payload?: object }[];
      }>('GET', `/agent/runs/${runId}/timeline`);
      return events;
    };
    const answer = (runId: string, body: object, status = 200) =>
      system.call('POST', `/agent/runs/${runId}/followups`, body, status);
    const blocked = (runId: string, title?: string) =>
      system.until(
        runId,
        (run) => run.state === 'BLOCKED' && (title === undefined || run.blocked_on?.title.includes(title) === true),
      );
    const gone = (run: RunItem) => run.is_sandbox_running === false;
    const ask = { approval_policy: 'ask', idle_timeout_minutes: 5 };

    describe.each(runKinds)('$kind', ({ kind, config, say }) => {
      const test = testsOfKind(kind);
      const create = (command: string, more: object = {}) =>
        system.createRun(say(command), { config: { ...ask, ...config, ...more } });

      test('runs an approved command in the same sandbox, which used no slot while it waited', async () => {
        const runId = await create('echo done-$((40+2))');
        const waiting = await blocked(runId);
        expect(waiting).toMatchObject({
          is_sandbox_running: true,
          status_message: { message: expect.stringContaining('asks for permission to use shell: echo done') },
          blocked_on: {
            kind: 'permission',
            action: { name: 'shell', category: 'command', input: { command: 'echo done-$((40+2))' } },
          },
        });
        expect(await textOf(runId)).not.toContain('done-42');
        // Two other runs can work at the same time: both slots are free, because a run that waits for a person uses no slot.
        const others = await Promise.all(
          [0, 1].map(() => system.createRun('```sh\nsleep 1; echo ran\n```', { config: runbook })),
        );
        for (const id of others) expect((await system.untilEnded(id)).state).toBe('SUCCEEDED');
        await answer(runId, { decision: 'approve', request_id: waiting.blocked_on?.request_id });
        const run = await system.untilEnded(runId);
        expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
        expect(run).not.toHaveProperty('blocked_on');
        expect(run.session_id).toBe(waiting.session_id);
        expect(await textOf(runId)).toContain('done-42');
        expect(await decisionsOf(runId)).toEqual(['approve by person']);
        const events = await typesOf(runId);
        expect(events.filter((event) => event.event_type === 'oz_run_blocked')).toHaveLength(1);
        expect(events.find((event) => event.event_type === 'followup_received')?.payload).toMatchObject({
          answers: waiting.blocked_on?.request_id,
          decision: 'approve',
          by: { type: 'user' },
        });
      });

      test("does not run a denied command, and gives the agent the person's reason", async () => {
        const runId = await create('echo done-$((40+2))');
        await blocked(runId);
        await answer(runId, { decision: 'deny', message: 'not on a Friday' });
        const run = await system.untilEnded(runId);
        expect(run.state).toBe(kind === 'runbook' ? 'FAILED' : 'SUCCEEDED');
        if (kind === 'runbook') expect(run.status_message?.message).toMatch(/echo done.*denied.*not on a Friday/s);
        expect(await resultsOf(runId)).toEqual(['denied']);
        const text = await textOf(runId);
        expect(text).not.toContain('done-42');
        expect(text).toContain('not on a Friday');
        expect(await decisionsOf(runId)).toEqual(['deny by person']);
      });

      test('keeps a run BLOCKED when its worker dies, and runs an approved command in a new sandbox without asking again', async () => {
        const runId = await create('echo done-$((40+2))');
        const first = await blocked(runId);
        await killHard(system.worker());
        system.startWorker();
        await system.until(runId, gone);
        const waiting = await system.run(runId);
        expect(waiting).toMatchObject({ state: 'BLOCKED', blocked_on: first.blocked_on });
        await answer(runId, { decision: 'approve' });
        const run = await system.untilEnded(runId);
        expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
        expect(run.session_id).not.toBe(first.session_id);
        expect(await textOf(runId)).toContain('done-42');
        const events = await typesOf(runId);
        expect(events.filter((event) => event.event_type === 'oz_run_blocked')).toHaveLength(1);
        if (kind === 'runbook') return;
        const { conversation, body } = models.requests.at(-1) ?? {};
        expect(conversation?.toolResults, 'the call that asked continues').toEqual([
          expect.stringContaining('done-42'),
        ]);
        expect(JSON.stringify(body)).not.toContain('You had asked');
      });

      test(
        "keeps the question when the sandbox's time ends, and applies a later decision in a new sandbox",
        async () => {
          const brief = () => create('echo done-$((40+2))', { idle_timeout_minutes: 0.03 });
          // Only `bin/test-long` approves a run here, because a later test of runbooks also approves after the sandbox has ended.
          const [denied, approved] = await Promise.all([brief(), isLong ? brief() : '']);
          const first = await blocked(denied);
          for (const runId of approved ? [denied, approved] : [denied]) {
            await blocked(runId);
            await system.until(runId, gone);
            expect((await system.run(runId)).state).toBe('BLOCKED');
          }
          await answer(denied, { decision: 'deny', message: 'never' });
          if (approved) await answer(approved, { decision: 'approve' });
          const run = await system.untilEnded(denied);
          expect(run.session_id).not.toBe(first.session_id);
          expect(run.state).toBe(kind === 'runbook' ? 'FAILED' : 'SUCCEEDED');
          const text = await textOf(denied);
          expect(text).not.toContain('done-42');
          expect(text).toContain('never');
          if (!approved) return;
          expect((await system.untilEnded(approved)).state).toBe('SUCCEEDED');
          expect(await textOf(approved)).toContain('done-42');
          const asked = (await typesOf(approved)).filter((event) => event.event_type === 'oz_run_blocked');
          expect(asked, 'what was approved is not asked again').toHaveLength(1);
        },
        { tags: 'long' },
      );

      test(
        'cancels a BLOCKED run at once, with and without its sandbox',
        async () => {
          const runId = await create('echo never');
          await blocked(runId);
          await system.call('POST', `/agent/runs/${runId}/interrupt`, undefined, 400);
          await system.call('DELETE', `/agent/runs/${runId}`, undefined, 409);
          await system.call('POST', `/agent/runs/${runId}/cancel`);
          expect((await system.run(runId)).state).toBe('CANCELLED');
          await system.until(runId, gone);
          const other = await create('echo never', { idle_timeout_minutes: 0.02 });
          await blocked(other);
          await system.until(other, gone);
          await system.call('POST', `/agent/runs/${other}/cancel`);
          expect(await system.run(other)).toMatchObject({ state: 'CANCELLED', is_sandbox_running: false });
          await answer(other, { decision: 'approve' }, 400);
        },
        { tags: 'long' },
      );
    });

    test('asks before each command of a runbook, and continues in a new sandbox with the command that was approved', {
      tags: 'long',
    }, async () => {
      const prompt =
        '```sh\necho one-$((1+0))\n```\n\n```bash\necho two-$((1+1))\n```\n\n```sh\necho three-$((1+2))\n```';
      const runId = await system.createRun(prompt, {
        config: { ...ask, ...runbook, idle_timeout_minutes: 0.05 },
      });
      await blocked(runId, 'echo one');
      await answer(runId, { decision: 'approve' });
      await blocked(runId, 'echo two');
      await system.until(runId, gone);
      await answer(runId, { decision: 'approve' });
      await blocked(runId, 'echo three');
      await answer(runId, { decision: 'approve' });
      const run = await system.untilEnded(runId);
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
      const outputs = (await blocksOf(runId)).flatMap(({ type, state, output }) =>
        type === 'action_result' && state === 'completed' ? [output?.text.trim()] : [],
      );
      expect(outputs).toEqual(['one-1', 'two-2', 'three-3']);
    });

    test('gives the model the answer to its question, in the same sandbox or in a later sandbox', async () => {
      const question = (title: string) => ({
        toolCalls: [{ name: 'ask_user', input: { question: title, options: ['a', 'b'] } }],
      });
      models.script([question('Which one?'), question('Really?'), { text: ['So be it.'] }]);
      const config = { ...oneModel, idle_timeout_minutes: 5 };
      const runId = await system.createRun('Choose.', { config });
      expect((await blocked(runId, 'Which')).blocked_on).toMatchObject({ kind: 'question', options: ['a', 'b'] });
      await answer(runId, {}, 400);
      await answer(runId, { message: 'the second' });
      await blocked(runId, 'Really');
      expect(models.requests.at(-1)?.conversation?.toolResults).toEqual(['the second']);
      await killHard(system.worker());
      system.startWorker();
      await system.until(runId, gone);
      await answer(runId, { message: 'yes, the second' });
      const run = await system.untilEnded(runId);
      expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
      expect(await textOf(runId)).toContain('So be it.');
      const { conversation, body } = models.requests.at(-1) ?? {};
      expect(conversation?.toolResults).toEqual(['yes, the second']);
      expect(JSON.stringify(body)).toContain('Which one?');
      expect(await decisionsOf(runId)).toEqual(['answer by person', 'answer by person']);
    });

    test('runs no command under the auto-deny policy and names the policy', async () => {
      const runId = await system.createRun('```sh\necho done-$((40+2))\n```', {
        config: { ...runbook, approval_policy: 'auto-deny' },
      });
      const run = await system.untilEnded(runId);
      expect(run).toMatchObject({ state: 'FAILED', status_message: { message: expect.stringContaining('auto-deny') } });
      expect(await textOf(runId)).not.toContain('done-42');
      expect(await decisionsOf(runId)).toEqual(['deny by policy']);
    });

    describe('an ACP harness', () => {
      const fixture = path.join(import.meta.dirname, '../../packages/agent/test/scripted-agent.mjs');
      const source = readFileSync(fixture).toString('base64');
      // The program of the harness is an attachment. The command waits for this file, because the agent starts the harness before it has
      // written all attachments.
      const create = () =>
        system.createRun('Go.', {
          config: {
            ...ask,
            harness: {
              type: 'acp',
              command: [
                'sh',
                '-c',
                'until node --check attachments/agent.mjs 2>/dev/null; do sleep 0.1; done; exec node attachments/agent.mjs permission-first',
              ],
            },
          },
          attachments: [{ file_name: 'agent.mjs', mime_type: 'text/javascript', data: source }],
        });

      const decisions = [
        [{ decision: 'approve' }, '\\"optionId\\":\\"once\\"', 'approve by person'],
        [{ decision: 'deny' }, '\\"optionId\\":\\"no\\"', 'deny by person'],
      ] as const;
      test.each(isLong ? decisions : decisions.slice(0, 1))(
        'gets the option that belongs to the decision %j',
        async (body, option, decision) => {
          const runId = await create();
          expect((await blocked(runId)).blocked_on).toMatchObject({ kind: 'permission', title: 'echo hi' });
          await answer(runId, body);
          const run = await system.untilEnded(runId);
          expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
          expect(await textOf(runId)).toContain(option);
          expect(await decisionsOf(runId)).toEqual([decision]);
        },
      );
    });
  });

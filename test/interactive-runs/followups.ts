/** Tests follow-ups to runs in every state, in real sandboxes, with runbooks and with the AI SDK loop against fake models. */
import { describe, expect, test } from 'vitest';
import type { FakeModels } from '../fakes/models.ts';
import { hasEnded, kindsOfTurn, runbook, runKinds, testsOfKind } from '../support/run-kinds.ts';
import { eventually, type System } from '../support/system.ts';

export const describeFollowUps = (system: System, models: FakeModels) =>
  describe('the system (follow-ups)', () => {
    interface Step {
      messages: { role: string; content: Record<string, unknown>[] }[];
    }

    const stepsOf = async (runId: string): Promise<string[]> => {
      const { steps } = await system.call<{ steps: Step[] }>('GET', `/agent/runs/${runId}/conversation`);
      return steps.map((step) => JSON.stringify(step));
    };
    const typesOf = async (runId: string) => {
      const { events } = await system.call<{ events: { event_type: string; execution_id?: number }[] }>(
        'GET',
        `/agent/runs/${runId}/timeline`,
      );
      return events;
    };
    const followUp = (runId: string, message: string, status = 200) =>
      system.call('POST', `/agent/runs/${runId}/followups`, { message }, status);
    /** Waits until the run has ended and the run's conversation has this number of steps. */
    const afterSteps = async (runId: string, steps: number) => {
      await eventually(`${steps} steps`, async () => (await stepsOf(runId).catch(() => [])).length === steps);
      return await system.until(runId, hasEnded);
    };

    const stays = { idle_timeout_minutes: 5 };
    const runbookThatStays = { config: { ...runbook, ...stays } };
    describe.each(runKinds)('$kind', ({ kind, config, say }) => {
      const test = testsOfKind(kind);
      const create = (command: string, more: object = {}) =>
        system.createRun(say(command), { config: { ...stays, ...config, ...more } });

      test('adds a follow-up to the first prompt of a run that is still queued', async () => {
        const blockers = await Promise.all(
          [0, 1].map(() => system.createRun('```sh\nwhile [ ! -e go ]; do sleep 0.1; done\n```', runbookThatStays)),
        );
        await Promise.all(blockers.map((id) => system.until(id, (run) => run.state === 'INPROGRESS')));
        const runId = await create('echo first-$((1+1))');
        await followUp(runId, say('echo second-$((1+2))'));
        expect((await system.run(runId)).state).toBe('QUEUED');
        for (const id of blockers) await system.call('POST', `/agent/runs/${id}/cancel`);
        const run = await system.untilEnded(runId);
        expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
        const steps = await stepsOf(runId);
        expect(steps).toHaveLength(1);
        expect(steps[0]).toContain('echo first');
        expect(steps[0]).toContain('echo second');
      });

      test('runs follow-ups to a running run as its next turns, in order, in the same sandbox', async () => {
        const runId = await create('echo $$ > here; sleep 2; echo one-$((1+0))');
        await system.until(runId, (run) => run.state === 'INPROGRESS');
        await followUp(runId, say('test -e here && echo two-$((1+1))'));
        await followUp(runId, say('test -e here && echo three-$((1+2))'));
        const run = await afterSteps(runId, 3);
        expect(run.state).toBe('SUCCEEDED');
        const [one, two, three] = await stepsOf(runId);
        expect(one).toContain('one-1');
        expect(two).toContain('two-2');
        expect(three).toContain('three-3');
        const types = (await typesOf(runId)).map((event) => event.event_type);
        expect(types.filter((type) => type === 'oz_run_done')).toHaveLength(1);
        expect(types.filter((type) => type === 'followup_received')).toHaveLength(2);
      });

      test('continues a run in a new execution if the sandbox of the run has ended, and the agent knows the conversation', async () => {
        const runId = await create('echo the-word-is-$((40+2))', { idle_timeout_minutes: 0 });
        const first = await system.until(runId, (run) => hasEnded(run) && run.is_sandbox_running === false);
        const before = models.requests.length;
        await followUp(runId, say('echo further-$((1+1))'));
        const second = await afterSteps(runId, 2);
        expect(second.state, JSON.stringify(second.status_message)).toBe('SUCCEEDED');
        expect(second.run_id).toBe(first.run_id);
        expect(second.conversation_id).toBe(first.conversation_id);
        expect(second.session_id).not.toBe(first.session_id);
        expect((await stepsOf(runId))[1]).toContain('further-2');
        // The harness has stored its history, so the model gets the earlier messages.
        if (kind === 'model') expect(JSON.stringify(models.requests[before]?.body)).toContain('the-word-is-42');
        const events = await typesOf(runId);
        expect(
          events.filter((event) => event.event_type === 'agent_started').map((event) => event.execution_id),
        ).toEqual([1, 2]);
        await system.until(runId, (run) => run.is_sandbox_running === false);
        // An empty message also continues a run whose sandbox has ended.
        await followUp(runId, '');
        await afterSteps(runId, 3);
      });

      test(
        'continues a succeeded run in its old sandbox if that sandbox still waits for follow-ups',
        async () => {
          const runId = await create('echo kept > file');
          const first = await system.untilEnded(runId);
          expect(first).toMatchObject({ state: 'SUCCEEDED', is_sandbox_running: true });
          await followUp(runId, say('cat file; echo again-$((1+1))'));
          const second = await afterSteps(runId, 2);
          expect(second).toMatchObject({ state: 'SUCCEEDED', session_id: first.session_id });
          const steps = await stepsOf(runId);
          expect(steps[1]).toContain('again-2');
          expect(steps[1]).toContain('kept');
          await followUp(runId, '', 400);
        },
        { tags: 'long' },
      );

      test(
        'continues a cancelled run with its files in a new execution',
        async () => {
          const runId = await create('echo kept-$((1+1)) > file; echo begun-$((1+1)); sleep 60');
          await eventually('output', async () => (await stepsOf(runId).catch(() => [])).join('').includes('begun-2'));
          await system.call('POST', `/agent/runs/${runId}/cancel`);
          await followUp(runId, say('cat file; echo after-$((1+2))'));
          const run = await afterSteps(runId, 2);
          expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
          const [before, after] = await stepsOf(runId);
          expect(before).toContain('"state":"failed"');
          for (const found of ['after-3', 'kept-2']) expect(after).toContain(found);
        },
        { tags: 'long' },
      );
    });

    test.each(kindsOfTurn(1))(
      'ends the turn at an interrupt, and continues with the next follow-up in the same sandbox ($kind)',
      async ({ config, say }) => {
        const runId = await system.createRun(say('echo begun-$((1+1)) | tee file; sleep 60'), { config });
        await eventually('output', async () => (await stepsOf(runId).catch(() => [])).join('').includes('begun-2'));
        await system.call('POST', `/agent/runs/${runId}/interrupt`);
        const first = await system.untilEnded(runId);
        expect(first).toMatchObject({ state: 'SUCCEEDED', is_sandbox_running: true });
        await system.call('POST', `/agent/runs/${runId}/interrupt`, undefined, 400);
        await followUp(runId, say('cat file; echo after-$((1+2))'));
        const second = await afterSteps(runId, 2);
        expect(second).toMatchObject({ state: 'SUCCEEDED', session_id: first.session_id });
        expect((await stepsOf(runId))[1]).toContain('begun-2');
      },
    );

    test('lets the sandboxes of ended runs wait without a slot, and ends the oldest ones if there are too many', {
      tags: 'long',
    }, async () => {
      const runIds: string[] = [];
      for (let n = 0; n < 6; n += 1) {
        const runId = await system.createRun('```sh\ntrue\n```', runbookThatStays);
        runIds.push(runId);
        expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      }
      await eventually('the oldest leave', async () => {
        const runs = await Promise.all(runIds.map((id) => system.run(id)));
        return runs.map((run) => run.is_sandbox_running).join() === 'false,false,true,true,true,true';
      });
    });
  });

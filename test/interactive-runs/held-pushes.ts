/** Tests pushes that a person has to approve, in real sandboxes with the real git. */
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { FakeGitHost } from '../fakes/git-host.ts';
import { runbook } from '../support/run-kinds.ts';
import type { System } from '../support/system.ts';

export const describeHeldPushes = (system: System, host: FakeGitHost) =>
  describe('the system (held pushes)', () => {
    let environment = '';
    beforeAll(async () => {
      await host.commit('acme', 'held', { 'README.md': 'first' });
      const config = { name: 'held', github_repos: [{ owner: 'acme', repo: 'held' }] };
      environment = (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
    });

    /** Starts a runbook that pushes in a script, in which the words of the command are hidden. */
    const start = (branch: string, more: object = {}) =>
      system.createRun(
        [
          '```sh',
          'cd held',
          'echo more >> README.md',
          'git -c user.name=a -c user.email=a@example.invalid commit -qam more',
          '```',
          '```sh',
          `cd held && printf 'g="git"; env $g "pu""sh" -q origin HEAD:${branch}' > ../ship && sh ../ship`,
          'echo pushed-$((40+2))',
          '```',
        ].join('\n'),
        {
          config: {
            ...runbook,
            environment_id: environment,
            approval_policy: 'ask',
            approval_rules: [{ push: 'acme/*' }],
            idle_timeout_minutes: 5,
            ...more,
          },
        },
      );
    const blocked = (runId: string) => system.until(runId, ({ state }: RunItem) => state === 'BLOCKED');
    const answer = (runId: string, body: object) => system.call('POST', `/agent/runs/${runId}/followups`, body, 200);
    const branchAt = (branch: string) => host.branchAt('acme', 'held', branch);

    test('a push in a script waits for the approval, while commands run without a question', async () => {
      const runId = await start('one');
      const run = await blocked(runId);
      expect(run).toMatchObject({
        approvals: [{ text: 'git pushes to acme/*', enforced_by: 'gateway' }],
        agent_config: { approval_rules: [{ push: 'acme/*' }] },
        blocked_on: {
          title: expect.stringContaining('git push to acme/held\none: new branch -> '),
          enforced_by: 'gateway',
        },
      });
      expect(await branchAt('one')).toBe('');
      await answer(runId, { decision: 'approve', request_id: run.blocked_on?.request_id });
      expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      expect(run.blocked_on?.title).toContain(await branchAt('one'));
    });

    test('an approval after the sandbox has ended lets a new sandbox push the same commit, without a second question', {
      tags: 'long',
    }, async () => {
      const runId = await start('two', { idle_timeout_minutes: 0.03 });
      const run = await blocked(runId);
      await system.until(runId, ({ is_sandbox_running: isRunning }) => isRunning === false);
      expect((await system.run(runId)).state).toBe('BLOCKED');
      await answer(runId, { decision: 'approve' });
      const ended = await system.untilEnded(runId);
      expect(ended.state, JSON.stringify(ended.status_message)).toBe('SUCCEEDED');
      expect(run.blocked_on?.title).toContain(await branchAt('two'));
      const { events } = await system.call<{ events: { event_type: string }[] }>(
        'GET',
        `/agent/runs/${runId}/timeline`,
      );
      expect(events.filter(({ event_type: type }) => type === 'oz_run_blocked')).toHaveLength(1);
    });

    test('a denied push fails with the reason, and nothing is pushed', async () => {
      const runId = await start('three');
      await blocked(runId);
      await answer(runId, { decision: 'deny' });
      const run = await system.untilEnded(runId);
      expect(run.state).toBe('FAILED');
      const conversation = await system.call('GET', `/agent/runs/${runId}/conversation`);
      expect(JSON.stringify(conversation)).toContain('a person denied this push');
      expect(await branchAt('three')).toBe('');
    });
  });

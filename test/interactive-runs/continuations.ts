/** Tests runs that continue in a new sandbox. Their files are there again, even if the earlier sandbox was killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import type { FakeGitHost } from '../fakes/git-host.ts';
import { isLong } from '../support/long.ts';
import { hasEnded, runbook, runKinds, testsOfKind } from '../support/run-kinds.ts';
import { eventually, killHard, type System } from '../support/system.ts';

/** Describes the tests. The settings of `system` must limit a stored workspace to 5 MB. */
export const describeContinuations = (system: System, host: FakeGitHost) =>
  describe('the system (continued runs)', () => {
    const gone = (run: RunItem) => hasEnded(run) && run.is_sandbox_running === false;
    const textOf = async (runId: string): Promise<string> =>
      await system.call('GET', `/agent/runs/${runId}/conversation`).then(JSON.stringify, () => '');
    const stepsOf = async (runId: string) =>
      (
        await system.call<{
          events: { event_type: string; payload?: { kind: string; name: string; error?: string } }[];
        }>('GET', `/agent/runs/${runId}/timeline`)
      ).events
        .filter(({ event_type }) => event_type === 'setup_step_finished')
        .map(({ payload }) => payload);
    const goOn = async (runId: string, message: string, awaited: string) => {
      await system.call('POST', `/agent/runs/${runId}/followups`, { message });
      await eventually(awaited, async () => (await textOf(runId)).includes(awaited)).catch(async (error) => {
        throw new Error(`${error.message}\n${await textOf(runId)}\n${JSON.stringify(await system.run(runId))}`);
      });
      return await system.until(runId, hasEnded);
    };
    const archives = async () => {
      const files = await readdir(path.join(system.dataDir, 'blobs/objects'), { recursive: true });
      return files.filter((name) => path.basename(name).startsWith('workspaces+')).length;
    };
    const block = (command: string) => `\`\`\`sh\n${command}\n\`\`\``;

    describe.each(runKinds)('$kind', ({ kind, config, say }) => {
      const test = testsOfKind(kind);
      test('restores files, links, file modes and the home folder in a new sandbox, and does not repeat the setup commands', async () => {
        const { uid } = await system.call<{ uid: string }>(
          'POST',
          '/agent/environments',
          {
            config: { name: 'E', setup_commands: ['date +%N > set-up-at; echo tool > ~/.tool'] },
          },
          201,
        );
        const runId = await system.createRun(
          say('echo kept-$((1+1)) > file; chmod 640 file; ln -s file link; mkdir .hidden; cat set-up-at > .hidden/at'),
          { config: { ...config, environment_id: uid, idle_timeout_minutes: 0 } },
        );
        const first = await system.until(runId, gone);
        expect(first.state, JSON.stringify(first.status_message)).toBe('SUCCEEDED');
        const second = await goOn(
          runId,
          say('cat link ~/.tool; stat -c %a file; cmp set-up-at .hidden/at && echo same-$((2+1))'),
          'same-3',
        );
        expect(second.state).toBe('SUCCEEDED');
        expect(second.session_id).not.toBe(first.session_id);
        const text = await textOf(runId);
        for (const found of ['kept-2', 'tool', '640']) expect(text).toContain(found);
        const steps = await stepsOf(runId);
        expect(steps.map((step) => step?.kind)).toEqual(['setup_command', 'workspace', 'workspace']);
        expect(steps[1]?.name).toBe('kept for later runs in this environment');
        expect(steps[2]?.name).toMatch(/^restored as it was after turn 1 of execution 1 \(\d+\.\d MB\)$/);
        expect(steps.map((step) => step?.error)).toEqual([undefined, undefined, undefined]);
        // A third execution finds the files of the second execution.
        await system.until(runId, gone);
        await goOn(runId, say('cat .hidden/at file; echo third-$((1+2))'), 'third-3');
      });

      test('does not change the state of an ended run when its worker is killed, and continues the run with the files of the last turn', async () => {
        const before = await archives();
        const runId = await system.createRun(say('echo kept-$((1+1)) > file'), {
          config: { ...config, idle_timeout_minutes: 5 },
        });
        await system.untilEnded(runId);
        await eventually('the workspace is kept', async () => (await archives()) > before);
        await killHard(system.worker());
        system.startWorker();
        await system.until(runId, (run) => run.is_sandbox_running === false);
        expect((await system.run(runId)).state).toBe('SUCCEEDED');
        expect((await goOn(runId, say('cat file; echo back-$((1+2))'), 'back-3')).state).toBe('SUCCEEDED');
        expect(await textOf(runId)).toContain('kept-2');
      });
    });

    test("writes a handoff from which a fresh clone gets the same files as the run's repository", async () => {
      await host.commit('acme', 'app', { 'readme.md': 'one\n', 'old.txt': 'old\n' });
      const { uid } = await system.call<{ uid: string }>(
        'POST',
        '/agent/environments',
        { config: { name: 'E', github_repos: [{ owner: 'acme', repo: 'app' }] } },
        201,
      );
      const change = [
        'cd app; touch /workspace/trap; chmod +x /workspace/trap; printf "#!/bin/sh\\ntouch /workspace/ran\\n" > /workspace/trap',
        'printf "\\0\\1\\377" > image.bin; echo two >> readme.md; git -c user.name=A -c user.email=a@b commit -qam c; rm old.txt; echo u > untracked',
        'for name in core.fsmonitor diff.external filter.x.clean; do git config $name /workspace/trap; done; echo "* filter=x" > .git/info/attributes',
        'echo notes > ../notes.md; report-artifact handoff ../notes.md; rm -f /workspace/ran',
      ];
      const runId = await system.createRun(block(change.join('\n')), {
        config: { ...runbook, environment_id: uid, idle_timeout_minutes: 0 },
      });
      const run = await system.until(runId, gone);
      expect(run.state, JSON.stringify(run.status_message) + (await textOf(runId))).toBe('SUCCEEDED');
      const { attachments } = await system.call<{ attachments: { filename: string; download_url: string }[] }>(
        'GET',
        `/agent/runs/${runId}/handoff/attachments`,
      );
      expect(attachments.map(({ filename }) => filename)).toEqual(['app.patch', 'notes.md']);
      const [patch, notes] = await Promise.all(
        attachments.map(async ({ download_url }) => Buffer.from(await (await fetch(download_url)).arrayBuffer())),
      );
      expect(notes?.toString()).toBe('notes\n');
      const folder = await mkdtemp(path.join(tmpdir(), 'runyard-handoff-'));
      // Do not block this process while git runs, because the code host runs in this process.
      const git = async (...args: string[]) => {
        const child = spawn('git', args, { cwd: path.join(folder, 'fresh'), stdio: ['pipe', 'ignore', 'inherit'] });
        child.stdin.on('error', () => {}).end(patch);
        expect((await once(child, 'close'))[0]).toBe(0);
      };
      await mkdir(path.join(folder, 'fresh'));
      await git('clone', '--quiet', host.template.replace('{owner}', 'acme').replace('{repo}', 'app'), '.');
      await git('apply', '-');
      const files = await readdir(path.join(folder, 'fresh'));
      expect(files.sort()).toEqual(['.git', 'image.bin', 'readme.md', 'untracked']);
      expect([...(await readFile(path.join(folder, 'fresh/image.bin')))]).toEqual([0, 1, 255]);
      expect(await readFile(path.join(folder, 'fresh/readme.md'), 'utf8')).toBe('one\ntwo\n');
      await rm(folder, { recursive: true });
      // While the agent made the patch, git ran none of the programs that the repository's configuration names.
      await goOn(runId, block('test -e ran || echo nothing-ran-$((1+2))'), 'nothing-ran-3');
    });

    const sessions = [
      ['that loads its own session', 'remembers'],
      ['that gets the conversation because its session is damaged', 'load-fails'],
      ['that gets the conversation because it loads no session', 'remembers-not'],
    ] as const;
    test.each(isLong ? sessions : sessions.slice(0, 2))(
      'an external harness %s continues in a new sandbox',
      async (_name, mode) => {
        const fixture = path.resolve(import.meta.dirname, '../../packages/agent/test/scripted-agent.mjs');
        const data = (await readFile(fixture)).toString('base64');
        const { uid } = await system.call<{ uid: string }>(
          'POST',
          '/agent/environments',
          // The program of the harness is an attachment. This setup command fails if the attachment is not there yet. So after a successful
          // setup, the harness can start.
          { config: { name: 'E', setup_commands: ['test -e attachments/agent.mjs'] } },
          201,
        );
        const node = 'exec "$(dirname "$(command -v report-artifact)")/../node" attachments/agent.mjs "$0"';
        const runId = await system.createRun('First words.', {
          config: { harness: { type: 'acp', command: ['sh', '-c', node, mode] }, environment_id: uid },
          attachments: [{ file_name: 'agent.mjs', mime_type: 'text/javascript', data }],
        });
        const first = await system.until(runId, gone);
        expect(first.state, JSON.stringify(first.status_message)).toBe('SUCCEEDED');
        await goOn(runId, 'Second words.', 'Second words.');
        const second = await system.until(runId, (run) => gone(run) && run.session_id !== first.session_id);
        expect(second.state, JSON.stringify(second.status_message)).toBe('SUCCEEDED');
        const text = await textOf(runId);
        expect(text).not.toContain('replayed');
        expect(text.includes('session_not_loaded')).toBe(mode === 'load-fails');
        const isLoaded = mode === 'remembers';
        expect(text.includes('I remember \\"First words.\\"\\n\\"Second words.\\"')).toBe(isLoaded);
        expect(text.includes('<conversation>')).toBe(!isLoaded);
      },
    );

    test('reports that a workspace is too large to store, and starts the next sandbox with a notice instead of the files', {
      tags: 'long',
    }, async () => {
      const runId = await system.createRun(block('head -c 8000000 /dev/urandom > big'), { config: runbook });
      await system.until(runId, gone);
      expect(await textOf(runId)).toContain('workspace_not_kept');
      await goOn(runId, block('ls; echo anew-$((1+2))'), 'anew-3');
      expect(await textOf(runId)).toContain('workspace_not_restored');
    });

    test('begins the next run of a conversation with the files of the last run, or, if the next run has another environment, with a notice instead', {
      tags: 'long',
    }, async () => {
      const runId = await system.createRun(block('echo kept-$((1+1)) > file; echo tool > ~/.tool'), {
        config: runbook,
      });
      const { conversation_id } = await system.until(runId, gone);
      const continued = async (config: object) => {
        const prompt = block('cat file ~/.tool || echo not-$((1+2))');
        const other = await system.createRun(prompt, { config: { ...runbook, ...config }, conversation_id });
        await system.until(other, gone);
        return { steps: await stepsOf(other), text: await textOf(other) };
      };
      const { steps, text } = await continued({});
      expect(steps.map((step) => step?.name)).toEqual([expect.stringContaining(`execution 1 of the run ${runId} (`)]);
      for (const found of ['kept-2', 'tool']) expect(text).toContain(found);
      const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config: { name: 'E' } }, 201);
      const elsewhere = await continued({ environment_id: uid });
      for (const found of ['not-3', 'workspace_not_restored', 'another environment'])
        expect(elsewhere.text).toContain(found);
    });
  });

/** Tests runs from the prompt to the end, with a real HTTP port, a real worker process and a real sandbox. */
import OzAPI, { BadRequestError } from 'oz-agent-sdk';
import { describe, expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { eventually, type System } from '../support/system.ts';

const rot13 = (text: string) =>
  text.replace(/[a-z]/gi, (letter) => {
    const code = letter.charCodeAt(0);
    return String.fromCharCode(code + ((code & 31) <= 13 ? 13 : -13));
  });

export const describeEndToEnd = (system: System) =>
  describe('the system (runs in a sandbox)', () => {
    interface Timeline {
      events: { event_type: string; payload?: Record<string, unknown>; execution_id?: number }[];
    }
    interface Conversation {
      steps: { messages: { role: string; content: Record<string, unknown>[] }[] }[];
    }

    const blocksOf = (conversation: Conversation) =>
      conversation.steps.flatMap((step) => step.messages.flatMap((message) => message.content));
    const timelineOf = async (runId: string) =>
      (await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`)).events;

    test('keeps the whole output of a command as a file, up to 64 MB, and its head and tail in the conversation', async () => {
      await system.call('PUT', '/secrets/PRINTED', { value: 'printed-secret-4711', scope: 'team' });
      const printed = isLong ? 500_000_000 : 3_000_000;
      const kept = isLong ? 64 * 1024 * 1024 : printed + 'first\nlast\n'.length + 'printed-secret-4711\n'.length;
      const script = `echo first; echo "$PRINTED"; yes a-line | head -c ${printed}; echo last`;
      const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, {
        config: { secrets: [{ name: 'PRINTED' }] },
      });
      const run = await system.untilEnded(runId);
      expect(run.state).toBe('SUCCEEDED');
      const conversation = await system.call<Conversation>('GET', `/agent/runs/${runId}/conversation`);
      const result = blocksOf(conversation).find((block) => block.type === 'action_result');
      const { text, output_artifact_uid: uid } = (result?.output ?? {}) as {
        text: string;
        output_artifact_uid: string;
      };
      expect([text.startsWith('first\n«redacted»\n'), text.endsWith('last\n')]).toEqual([true, true]);
      expect(run.artifacts).toMatchObject([{ artifact_type: 'FILE', data: { artifact_uid: uid, size_bytes: kept } }]);
      const artifact = await system.call<{ data: { download_url: string } }>('GET', `/agent/artifacts/${uid}`);
      const bytes = Buffer.from(await (await fetch(artifact.data.download_url)).arrayBuffer());
      expect(bytes).toHaveLength(kept);
      expect(bytes.subarray(0, 40).toString()).toBe(`first\n${'*'.repeat(19)}\na-line\na-line\n`);
      expect(
        bytes
          .subarray(-1_000_000)
          .toString()
          .replaceAll(/a-line\n/g, '').length,
      ).toBeLessThan(14);
    });

    test('runs a runbook prompt and returns everything that it reported', async () => {
      const prompt =
        'Say hello.\n\n```sh\necho "hello from $(pwd)"\n```\n\n```sh\necho made > made.txt && report-artifact made.txt --description "a file"\n```\n';
      const runId = await system.createRun(prompt, {
        title: 'Hello',
        metadata: { ticket: 'R-1' },
        config: { name: 'greeter' },
      });
      const run = await system.untilEnded(runId);
      expect(run).toMatchObject({
        state: 'SUCCEEDED',
        title: 'Hello',
        prompt,
        metadata: { ticket: 'R-1' },
        agent_config: { name: 'greeter' },
        source: 'API',
        execution_location: 'REMOTE',
        is_run_type_cancellable: true,
        session_link: `${system.baseUrl()}/runs/${runId}`,
      });

      const types = (await timelineOf(runId)).map((event) => event.event_type);
      expect(types.filter((type) => !type.startsWith('setup_step'))).toEqual(
        expect.arrayContaining([
          'oz_run_created',
          'oz_run_claimed',
          'worker_container_ready',
          'agent_started',
          'oz_run_done',
        ]),
      );
      expect(types.indexOf('oz_run_claimed')).toBeLessThan(types.indexOf('agent_started'));
      expect(types.indexOf('agent_started')).toBeLessThan(types.indexOf('oz_run_done'));

      const conversation = await system.call<Conversation>('GET', `/agent/runs/${runId}/conversation`);
      const blocks = blocksOf(conversation);
      const results = blocks.filter((block) => block.type === 'action_result');
      expect(results).toHaveLength(2);
      expect(results[0]).toMatchObject({ category: 'command', state: 'completed' });
      expect(JSON.stringify(results[0])).toContain('hello from /workspace');

      const transcript = await fetch(`${system.baseUrl()}/api/v1/agent/runs/${runId}/transcript`, {
        headers: { authorization: `Bearer ${system.key}` },
        redirect: 'manual',
      });
      expect(transcript.status).toBe(302);
      const raw = await (await fetch(transcript.headers.get('location') ?? '')).text();
      const lines = raw
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(lines.some((line) => line.method === 'session/prompt')).toBe(true);

      const [artifact] = run.artifacts ?? [];
      expect(artifact).toMatchObject({
        artifact_type: 'FILE',
        data: { filename: 'made.txt', size_bytes: 5, description: 'a file' },
      });
      const { artifact_uid: uid } = (artifact?.data ?? {}) as { artifact_uid?: string };
      const detail = await system.call<{ data: { download_url: string } }>('GET', `/agent/artifacts/${uid}`);
      expect(await (await fetch(detail.data.download_url)).text()).toBe('made\n');
      // When the agent has ended, the worker ends the sandbox too.
      await system.until(runId, (item) => item.is_sandbox_running === false);
    });

    test('works with the published client, which creates a run and reads the run until it has ended', async () => {
      const client = new OzAPI({ apiKey: system.key, baseURL: `${system.baseUrl()}/api/v1` });
      const { run_id } = await client.agent.run({ prompt: '```sh\necho from the published client\n```', title: 'SDK' });
      const done = await eventually('end of the run', async () => {
        const run = await client.agent.runs.retrieve(run_id);
        return ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(run.state) ? run : null;
      });
      expect(done).toMatchObject({ state: 'SUCCEEDED', title: 'SDK' });
      const listed = await client.agent.runs.list({ state: ['SUCCEEDED'], limit: 5 });
      expect(listed.runs.map((run) => run.run_id)).toContain(run_id);
      await expect(client.agent.runs.cancel(run_id)).rejects.toBeInstanceOf(BadRequestError);
    });

    test('ends a run as FAILED with the exit code of its failing command', async () => {
      const runId = await system.createRun('```sh\necho before; exit 7\n```\n```sh\necho never\n```');
      const run = await system.untilEnded(runId);
      expect(run.state).toBe('FAILED');
      expect(run.status_message?.message).toContain('7');
      const blocks = blocksOf(await system.call<Conversation>('GET', `/agent/runs/${runId}/conversation`));
      expect(JSON.stringify(blocks)).toContain('before');
      expect(blocks.filter((block) => block.type === 'action')).toHaveLength(1);
    });

    test('ends a run without commands as FAILED, and says how to add a model unless the request names the runbook', async () => {
      const prompt = 'Please write a poem.';
      const [fellBack, chosen] = await Promise.all(
        [{}, { config: { model_id: 'runbook' } }].map(async (request) =>
          system.untilEnded(await system.createRun(prompt, request)),
        ),
      );
      for (const run of [fellBack, chosen]) {
        expect(run).toMatchObject({
          state: 'FAILED',
          status_message: { error_code: 'invalid_request', message: expect.stringContaining('nothing to run') },
        });
      }
      expect(fellBack?.status_message?.message).toMatch(/RUNYARD_ANTHROPIC_API_KEY.*RUNYARD_MODEL_BASE_URL/s);
      expect(chosen?.status_message?.message).not.toContain('RUNYARD_');
    });

    test('runs setup commands before the agent, reports their duration and exit code, and shows the output of a command that fails the run', async () => {
      const make = (setup_commands: string[]) =>
        system.call<{ uid: string }>('POST', '/agent/environments', { config: { name: 'env', setup_commands } }, 201);
      const good = await make(['echo prepared > prepared.txt']);
      const first = await system.untilEnded(
        await system.createRun('```sh\ncat prepared.txt\n```', { config: { environment_id: good.uid } }),
      );
      expect(first.state).toBe('SUCCEEDED');
      const step = (await timelineOf(first.run_id)).find(
        (event) => event.event_type === 'setup_step_finished' && event.payload?.kind === 'setup_command',
      );
      expect(step?.payload).toMatchObject({ exit_code: 0, duration_ms: expect.any(Number) });

      const bad = await make(['echo this is why >&2; exit 3']);
      const second = await system.untilEnded(await system.createRun('Go.', { config: { environment_id: bad.uid } }));
      expect(second).toMatchObject({ state: 'FAILED', status_message: { error_code: 'environment_setup_failed' } });
      expect(second.status_message?.message).toContain('this is why');
      expect(second.status_message?.message).toContain('3');
    });

    test('writes attachments into the workspace under safe file names', async () => {
      const runId = await system.createRun('```sh\ncat attachments/*\nls -a attachments | sort\n```', {
        attachments: [
          {
            file_name: '../../evil name.txt',
            mime_type: 'text/plain',
            data: Buffer.from('attached!').toString('base64'),
          },
        ],
      });
      const run = await system.untilEnded(runId);
      expect(run.state).toBe('SUCCEEDED');
      expect(JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`))).toContain('attached!');
    });

    test('marks a run as cancelled at once and ends its sandbox within seconds, even if the command ignores SIGTERM', async () => {
      const runId = await system.createRun(
        "```sh\ntrap '' TERM INT HUP; echo ready; while true; do sleep 1; done\n```",
      );
      await eventually('output', async () =>
        JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(() => '')).includes('ready'),
      );
      expect(await system.call<string>('POST', `/agent/runs/${runId}/cancel`)).toBe(runId);
      expect((await system.run(runId)).state).toBe('CANCELLED');
      await system.until(runId, (run) => run.is_sandbox_running === false, 10_000);
      await system.call('POST', `/agent/runs/${runId}/cancel`, undefined, 400);
    });

    test('stores only a part of an output of 200 MB with invalid UTF-8, and reports the size of the whole output', {
      tags: 'long',
      timeout: 90_000,
    }, async () => {
      const runId = await system.createRun(
        '```sh\nprintf "start \\377\\376 "; head -c 200000000 /dev/zero | tr "\\\\0" x; printf " end"\n```',
      );
      const run = await system.untilEnded(runId, 60_000);
      expect(run.state).toBe('SUCCEEDED');
      const text = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
      expect(text.length).toBeLessThan(200_000);
      expect(text).toContain('start \ufffd\ufffd');
      expect(text).toContain(' end');
      expect(text).toMatch(/200,?000,?0\d\d/);
    });

    test('runs a prompt of 1 MB and returns all of it', { tags: 'long' }, async () => {
      const prompt = `${'x'.repeat(1024 * 1024 - 40)}\n\`\`\`sh\necho ok\n\`\`\`\n`;
      const run = await system.untilEnded(await system.createRun(prompt));
      expect(run.state).toBe('SUCCEEDED');
      expect(run.prompt).toBe(prompt);
    });

    test('ends a run and reports the reason when an ACP harness exits at once or never answers', async () => {
      const quits = await system.createRun('Go.', {
        config: { harness: { type: 'acp', command: ['sh', '-c', 'echo no licence >&2; exit 9'] } },
      });
      const run = await system.untilEnded(quits);
      expect(run).toMatchObject({ state: 'ERROR', status_message: { error_code: 'agent_process_failed' } });
      expect(run.status_message?.message).toContain('no licence');
    });

    test('stores neither the run token nor a key of the service in the files and records of a run', async () => {
      // The command prints its findings with replaced letters (ROT13), because the service removes tokens that it recognises from all
      // text.
      const look =
        '(env; cat /proc/*/environ; cat /proc/*/cmdline) 2>/dev/null | tr "\\0" "\\n" | tr a-zA-Z n-za-mN-ZA-M';
      const control =
        'CONTROL="ryr_""control-of-the-test-0123456789" sleep 60 & until grep -q CONTROL= /proc/$!/environ; do :; done';
      const runId = await system.createRun(`\`\`\`sh\n${control}\n${look}; kill $!\n\`\`\``);
      await system.untilEnded(runId);
      const text = rot13(JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`)));
      expect(text).toContain('PATH=');
      expect(new Set(text.match(/ryr_[A-Za-z0-9_-]{20,}/g))).toEqual(new Set(['ryr_control-of-the-test-0123456789']));
      expect(text).not.toContain(system.key);
    });

    test('lowers the limits of a sandbox to the limits of its environment, and never raises them', {
      tags: 'long',
    }, async () => {
      const limits = { disk_mb: 64, processes: 100_000 };
      const { uid } = await system.call<{ uid: string }>(
        'POST',
        '/agent/environments',
        { config: { name: 'Small', limits } },
        201,
      );
      const prompt = '```sh\ntrap "" XFSZ; truncate -s 100000000 one || echo too large\n```\n';
      const runId = await system.createRun(prompt, { config: { environment_id: uid } });
      expect((await system.untilEnded(runId)).state).toBe('SUCCEEDED');
      const conversation = await system.call<Conversation>('GET', `/agent/runs/${runId}/conversation`);
      expect(JSON.stringify(blocksOf(conversation))).toContain('too large\\n');
      const ready = (await timelineOf(runId)).find((event) => event.event_type === 'worker_container_ready');
      const held = ready?.payload?.limits as { disk_mb: number; processes: number; memory_mb: number };
      expect(held.disk_mb).toBe(64);
      expect(held.processes).toBeLessThan(100_000);
      expect(held.memory_mb).toBeGreaterThanOrEqual(128);
    });
  });

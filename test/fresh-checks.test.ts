/** Tests checks in fresh sandboxes in a whole system: what an agent changes in its own sandbox does not change them. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RunCheck } from '@runyard/contract/runs/checks';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { afterAll, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { describeSystem } from './support/describe-system.ts';
import { eventually, killHard, type System } from './support/system.ts';

const token = 'github_pat_of-the-fresh-checks-0123456789';
let host: FakeGitHost | undefined;
/** A server that the environment allows. It remembers the paths of its requests. */
const reached: string[] = [];
const allowed = createServer((request, response) => {
  reached.push(request.url ?? '');
  response.end('reached\n');
});
afterAll(async () => {
  await host?.close();
  allowed.close();
});

/** A project whose test is red, because `src/sum` is wrong. */
const project = {
  'src/sum': 'echo 5\n',
  'test/sum.test': 'test "$(sh src/sum)" = 4 || { echo "sum is $(sh src/sum), not 4"; exit 1; }\n',
  'test/.hidden/all': 'sh test/sum.test\n',
  'run-tests': 'set -e\nsh test/.hidden/all\necho all passed\n',
  '.gitignore': 'node_modules\n.cache\n',
};

async function startHost(): Promise<FakeGitHost> {
  const started = await startFakeGitHost({ accepts: (_, password) => password === token });
  await started.commit('acme', 'sum', project);
  return started;
}

const options = async () => {
  host ??= await startHost();
  await once(allowed.listen(0, '127.0.0.1'), 'listening');
  return {
    env: {
      RUNYARD_CODE_HOST_URL: host.template,
      RUNYARD_EGRESS: `127.0.0.1:${(allowed.address() as AddressInfo).port}`,
      RUNYARD_EGRESS_PRIVATE_NETWORKS: '127.0.0.1/32',
    },
  };
};

const tests: RunCheck = { name: 'tests', command: 'sh run-tests' };
const trusted: RunCheck = { ...tests, name: 'trusted tests', fresh: true, trusted_paths: ['test', 'run-tests'] };

interface Checked {
  readonly runId: string;
  readonly state: string;
  readonly message: string;
  readonly code: string | undefined;
  /** `NAME STATE`, in order. */
  readonly checks: readonly string[];
  readonly events: readonly TimelineEvent[];
}

async function startIn(system: System, environment_id: string, script: string, checks: RunCheck[], config = {}) {
  return await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id, checks, ...config } });
}

async function endOf(system: System, runId: string): Promise<Checked> {
  const run = await system.untilEnded(runId);
  const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
  const checks = events
    .filter(({ event_type }) => event_type === 'check_finished')
    .map(({ payload = {} }) => `${payload.name} ${payload.state}`);
  const { message = '', error_code: code } = run.status_message ?? {};
  return { runId, state: run.state, message, code, checks, events };
}

describeSystem('a check in a fresh sandbox', options, (system) => {
  let environment: string;
  const run = async (script: string, checks: RunCheck[], config = {}) =>
    await endOf(system, await startIn(system, environment, script, checks, config));

  test('is red for an agent that edits the test and the script, and is green in its own sandbox', async () => {
    await system.call('POST', '/code-hosts', { scope: 'team', kind: 'token', token }, 201);
    const config = {
      name: 'Sum',
      github_repos: [{ owner: 'acme', repo: 'sum' }],
      working_directory: 'sum',
      network: { allowed_hosts: [`127.0.0.1:${(allowed.address() as AddressInfo).port}`] },
      setup_commands: ['mkdir -p sum/node_modules/.bin && echo "echo of the setup" > sum/node_modules/.bin/tool'],
    };
    environment = (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
    const claimed = await run('echo true > test/sum.test; echo true > run-tests', [tests, trusted]);
    expect(claimed).toMatchObject({
      state: 'FAILED',
      code: 'checks_failed',
      checks: ['tests passed', 'trusted tests failed'],
      message: expect.stringContaining('sum is 5, not 4'),
    });
    const finished = claimed.events.findLast(({ event_type }) => event_type === 'check_finished')?.payload ?? {};
    expect(finished).toMatchObject({ exit_code: 1, duration_ms: expect.any(Number), check_run_id: expect.any(String) });
    const ofCheck = await system.call<object>('GET', `/agent/runs/${finished.check_run_id}`);
    expect(ofCheck).toMatchObject({ state: 'FAILED', parent_run_id: claimed.runId, title: 'Check trusted tests' });
  }, 240_000);

  test('is green for an agent that corrects the code', { tags: 'long', timeout: 120_000 }, async () => {
    const { state, checks, message } = await run('echo "echo 4" > src/sum', [tests, trusted]);
    expect({ state, checks }, message).toEqual({
      state: 'SUCCEEDED',
      checks: ['tests passed', 'trusted tests passed'],
    });
  });

  test('keeps trusted files that the agent renamed, deleted, replaced by a link or a repository, or added to', async () => {
    const repair = 'echo "echo 4" > src/sum';
    const bad = 'exit 1';
    const attacks: readonly (readonly [script: string, state: 'passed' | 'failed'])[] = [
      ['mv test tests; mkdir test; echo true > test/sum.test', 'failed'],
      ['rm -rf test; ln -s src test; printf "exit 0\n" > src/sum.test', 'failed'],
      ['rm test/sum.test; ln -s /bin/true test/sum.test', 'failed'],
      ['rm -rf test; git init -q test; echo true > test/sum.test', 'failed'],
      [`${repair}; rm -rf test`, 'passed'],
      [`${repair}; echo "${bad}" > test/sum.test; git -c user.name=a -c user.email=a@b commit -qam x`, 'passed'],
      [`${repair}; echo "* text eol=crlf working-tree-encoding=UTF-16 filter=x" > .gitattributes`, 'passed'],
    ];
    const added: RunCheck = {
      ...trusted,
      name: 'no new tests',
      command: 'test ! -e test/added && test ! -e test/.h/x',
    };
    const runs = await Promise.all(
      attacks.map(async ([script, state]) => ({
        script,
        state,
        ended: await run(`${script}; mkdir -p test/.h; touch test/added test/.h/x 2> /dev/null || true`, [
          added,
          trusted,
        ]),
      })),
    );
    for (const { script, state, ended } of runs)
      expect({ script, checks: ended.checks }, ended.message).toEqual({
        script,
        checks: ['no new tests passed', `trusted tests ${state}`],
      });
  }, 300_000);

  test('gets nothing of the home, the caches, the ignored files, the hooks and the git configuration of the agent', async () => {
    const attack = [
      'mkdir -p "$HOME/bin" "$HOME/.cache/checks" && echo evil | tee "$HOME/bin/tool" "$HOME/.cache/checks/green" "$HOME/.profile" "$HOME/.gitconfig"',
      'echo evil > node_modules/.bin/tool; mkdir .cache; echo evil > .cache/green',
      'printf "#!/bin/sh\\ntouch /tmp/hooked\\n" | tee .git/hooks/pre-commit .git/hooks/post-checkout; chmod +x .git/hooks/*',
      'git config core.fsmonitor "touch /tmp/hooked"; git config filter.x.smudge "touch /tmp/hooked"; git config core.hooksPath .git/hooks',
      'echo "* filter=x" > .gitattributes',
    ].join('\n');
    const command = [
      'grep -q setup node_modules/.bin/tool && test ! -e .cache && test ! -e "$HOME/.profile" && test ! -e "$HOME/bin" && test ! -e "$HOME/.gitconfig"',
      'git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git checkout -q . && test ! -e /tmp/hooked',
      'test -e .gitattributes',
    ].join('\n');
    const { checks, message } = await run(attack, [{ name: 'clean', command, fresh: true }]);
    expect(checks, message).toEqual(['clean passed']);
  }, 120_000);

  test('has a network only in its setup, and has neither secrets nor the token of the run', async () => {
    const url = `http://127.0.0.1:${(allowed.address() as AddressInfo).port}`;
    const fetchOf = (path: string) =>
      `NO_PROXY= no_proxy= node -e 'fetch("${url}${path}").then((r) => process.exit(r.ok ? 0 : 3), () => process.exit(4))'`;
    await system.call('PUT', '/secrets/TOKEN_OF_TEAM', { value: 'value-of-the-team-0123', scope: 'team' }, 200);
    const config = {
      name: 'With network',
      github_repos: [{ owner: 'acme', repo: 'sum' }],
      network: { allowed_hosts: [url.slice('http://'.length)] },
      setup_commands: [fetchOf('/setup')],
      secrets: [{ name: 'TOKEN_OF_TEAM' }],
    };
    const uid = (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
    const command = [
      `${fetchOf('/check')} && exit 5`,
      'env | grep -E "value-of-the-team|ryr_" && exit 6',
      'cat /proc/[0-9]*/environ 2> /dev/null | tr "\\0" "\\n" | grep -E "value-of-the-team|ryr_" && exit 7',
      'git ls-remote "$(git -C sum remote get-url origin)" && exit 8',
      'exit 0',
    ].join('\n');
    const id = await startIn(system, uid, fetchOf('/agent'), [{ name: 'closed', command, fresh: true }]);
    const { checks, message } = await endOf(system, id);
    expect(checks, message).toEqual(['closed passed']);
    expect(reached.filter((path) => path === '/setup').length).toBeGreaterThanOrEqual(1);
    expect(reached.filter((path) => path === '/agent')).toHaveLength(1);
    expect(reached).not.toContain('/check');
  }, 120_000);

  test('is red, and not green, if the base commit, a repository or the stored changes are missing', async () => {
    const attacks: readonly (readonly [script: string, message: string])[] = [
      [
        'git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git update-ref refs/runyard/base HEAD',
        'base commit of sum is missing',
      ],
      ['cd .. && mkdir -p a/b && mv sum a/b/sum && mkdir sum', 'base commit of sum is missing'],
      ['rm -rf .git; git init -q .', 'base commit of sum is missing'],
      ['rm -rf .git/objects/*; ls', 'the changes could not be stored'],
    ];
    const always: RunCheck = { name: 'always', command: 'true', fresh: true };
    const ended = await Promise.all(attacks.map(([script]) => run(script, [always])));
    for (const [index, [, message]] of attacks.entries())
      expect(ended[index]).toMatchObject({
        state: 'FAILED',
        checks: ['always failed'],
        message: expect.stringContaining(message),
      });
    const typo = await run('true', [{ ...always, trusted_paths: ['tests/**'] }]);
    expect(typo).toMatchObject({
      state: 'FAILED',
      message: expect.stringContaining('tests/** names no file of the base commit'),
    });
  }, 240_000);

  test('of a fork has the base commit and the changes of the fork, and not those of the forked conversation', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    const changes: RunCheck = {
      name: 'changes',
      command: 'test -e src/fork && test ! -e src/original && git rev-parse HEAD > /dev/null && cat src/base',
      fresh: true,
    };
    const original = await run('echo "echo 4" > src/sum; touch src/original', [trusted]);
    expect(original.checks, original.message).toEqual(['trusted tests passed']);
    await host?.commit('acme', 'sum', { 'src/base': 'the new base\n' });
    const { conversation_id: conversation } = await system.call<{ conversation_id: string }>(
      'GET',
      `/agent/runs/${original.runId}`,
    );
    const { conversation_id: fork } = await system.call<{ conversation_id: string }>(
      'POST',
      `/agent/conversations/${conversation}/fork`,
      {},
    );
    const { run_id: id } = await system.call<{ run_id: string }>('POST', '/agent/runs', {
      prompt: '```sh\ntouch src/fork; echo true > test/sum.test\n```',
      conversation_id: fork,
      config: { environment_id: environment, checks: [changes, trusted] },
    });
    const wrong = await endOf(system, id);
    expect(wrong, wrong.message).toMatchObject({
      state: 'FAILED',
      checks: ['changes passed', 'trusted tests failed'],
      message: expect.stringContaining('sum is 5, not 4'),
    });
    const message = '```sh\ntest -e src/fork && echo "echo 4" > src/sum\n```';
    await system.call('POST', `/agent/runs/${id}/followups`, { message });
    await system.until(id, ({ state }) => state === 'SUCCEEDED');
    expect((await endOf(system, id)).checks).toEqual([...wrong.checks, 'changes passed', 'trusted tests passed']);
  });

  test('is bounded if its command prints a gigabyte, forks or never ends', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    const checks: RunCheck[] = [
      { name: 'loud', command: 'head -c 1000000000 /dev/zero | tr "\\0" x; echo end', fresh: true },
      {
        name: 'forking',
        command: 'for n in $(seq 50); do (setsid sleep 4816.5 &) ; done; sleep 4816.5',
        fresh: true,
        timeout_seconds: 2,
      },
    ];
    const { checks: seen, events, message } = await run('true', checks);
    expect(seen).toEqual(['loud passed', 'forking failed']);
    expect(message).toContain('was killed after 2 s');
    const tail = String(events.find(({ event_type }) => event_type === 'check_finished')?.payload?.output_tail);
    expect(tail.endsWith('end\n')).toBe(true);
    expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(8 * 1024);
    const { findProcesses } = await import('../packages/worker/src/state/processes.ts');
    await eventually('end of the processes', async () => (await findProcesses('cmdline', '4816.5')).length === 0);
  });

  const childOf = async (runId: string) =>
    await eventually('run of the check', async () => {
      const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
      if (!events.some(({ event_type }) => event_type === 'check_started')) return null;
      const { runs } = await system.call<{ runs: { run_id: string; parent_run_id?: string }[] }>(
        'GET',
        '/agent/runs?limit=20',
      );
      return runs.find(({ parent_run_id }) => parent_run_id === runId)?.run_id ?? null;
    });
  const slow: RunCheck = { name: 'slow', command: 'sleep 4817.5', fresh: true };

  test('ends with the run that a person cancels, and fails the check if a person cancels it', {
    tags: 'long',
    timeout: 120_000,
  }, async () => {
    const cancelled = await startIn(system, environment, 'true', [slow]);
    const child = await childOf(cancelled);
    await system.until(child, ({ state }) => state === 'INPROGRESS');
    await system.call('POST', `/agent/runs/${cancelled}/cancel`, {});
    expect((await system.untilEnded(child)).state).toBe('CANCELLED');
    const kept = await startIn(system, environment, 'true', [slow]);
    const ofKept = await childOf(kept);
    await system.until(ofKept, ({ state }) => state === 'INPROGRESS');
    await system.call('POST', `/agent/runs/${ofKept}/cancel`, {});
    expect(await endOf(system, kept)).toMatchObject({
      state: 'FAILED',
      code: 'checks_failed',
      checks: ['slow failed'],
    });
  });

  test('survives kill -9 of the service and of the worker', { tags: 'long', timeout: 240_000 }, async () => {
    const patient: RunCheck = {
      name: 'patient',
      command: 'for n in $(seq 60); do test -e /tmp/x && break; sleep 0.2; done; grep -q "echo 4" src/sum',
      fresh: true,
    };
    const runId = await startIn(system, environment, 'echo "echo 4" > src/sum', [patient]);
    const child = await childOf(runId);
    await system.until(child, ({ state }) => state === 'INPROGRESS');
    await killHard(system.service());
    await system.startService();
    await killHard(system.worker());
    system.startWorker();
    expect(await endOf(system, runId)).toMatchObject({ state: 'SUCCEEDED', checks: ['patient passed'] });
    const { runs } = await system.call<{ runs: { parent_run_id?: string }[] }>('GET', '/agent/runs?limit=20');
    expect(runs.filter(({ parent_run_id }) => parent_run_id === runId)).toHaveLength(1);
  });

  test('fails the check if its own sandbox is killed, and fails the run if that of the agent is killed', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    const { findProcesses } = await import('../packages/worker/src/state/processes.ts');
    const killAgentOf = async (runId: string) => {
      for (const pid of await findProcesses('cmdline', runId)) process.kill(pid, 'SIGKILL');
    };
    const runId = await startIn(system, environment, 'true', [slow]);
    const child = await childOf(runId);
    await system.until(child, ({ state }) => state === 'INPROGRESS');
    await killAgentOf(child);
    expect(await endOf(system, runId)).toMatchObject({
      state: 'FAILED',
      code: 'checks_failed',
      checks: ['slow failed'],
    });
    const other = await startIn(system, environment, 'true', [slow]);
    const ofOther = await childOf(other);
    await system.until(ofOther, ({ state }) => state === 'INPROGRESS');
    await killAgentOf(other);
    expect((await system.untilEnded(other)).state).toBe('ERROR');
    await system.call('POST', `/agent/runs/${ofOther}/cancel`, {}).catch(() => {});
    await system.untilEnded(ofOther);
  });
});

const example = async (name: string) =>
  await readFile(new URL(`../examples/caught-by-a-check/${name}`, import.meta.url), 'utf8');

const oneSlot = async () => {
  host ??= await startHost();
  return { env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_WORKER_SLOTS: '1' } };
};

describeSystem('a worker with one slot', oneSlot, (system) => {
  test('runs the check of a run whose agent waits for it', { tags: 'long', timeout: 240_000 }, async () => {
    await system.call('POST', '/code-hosts', { scope: 'team', kind: 'token', token }, 201);
    const config = { name: 'Sum', github_repos: [{ owner: 'acme', repo: 'sum' }], working_directory: 'sum' };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const ids = await Promise.all([0, 1].map(() => startIn(system, uid, 'echo "echo 4" > src/sum', [trusted])));
    for (const id of ids) expect((await endOf(system, id)).state).toBe('SUCCEEDED');
  });

  test('catches the agent of examples/caught-by-a-check, and lets the one that corrects the code succeed', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    const names = ['package.json', 'src/sum.js', 'test/sum.test.js'];
    const files = await Promise.all(names.map(async (name) => [name, await example(`project/${name}`)] as const));
    await host?.commit('acme', 'example', Object.fromEntries(files));
    const config = { name: 'E', github_repos: [{ owner: 'acme', repo: 'example' }], working_directory: 'example' };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const checks = JSON.parse(await example('checks.json'));
    const runOf = async (prompt: string) =>
      await endOf(system, await system.createRun(await example(prompt), { config: { environment_id: uid, checks } }));
    expect(await runOf('claim.md')).toMatchObject({
      state: 'FAILED',
      code: 'checks_failed',
      checks: ['tests passed', 'tests of the base commit failed'],
      message: expect.stringContaining('sum adds two numbers'),
    });
    const fixed = await runOf('fix.md');
    expect(fixed, fixed.message).toMatchObject({
      state: 'SUCCEEDED',
      checks: ['tests passed', 'tests of the base commit passed'],
    });
  });
});

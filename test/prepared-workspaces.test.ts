/**
 * Tests prepared workspaces and mirrors of repositories in a whole system: a run stores them on its worker, and later runs use them.
 */
import { existsSync } from 'node:fs';
import { open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { afterAll, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { describeSystem } from './support/describe-system.ts';
import { eventually, killHard, type System } from './support/system.ts';

const token = 'github_pat_of-the-prepared-workspaces-0123';
let host: FakeGitHost | undefined;
let isRevoked = false;
afterAll(async () => await host?.close());

const hostile = {
  'README.md': 'first\n',
  '.gitmodules': '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch owned\n',
  '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs\nREADME.md filter=evil\n',
  'large.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 99999999999\n',
  '.githooks/post-checkout': '#!/bin/sh\ntouch /workspace/owned\n',
  'objects/info/alternates': '/etc\n',
  'two\nlines': 'a name with a newline\n',
  ...Object.fromEntries(Array.from({ length: 150 }, (_, each) => [`many/${each % 12}/${each}.txt`, `file ${each}\n`])),
};

const options = async () => {
  host = await startFakeGitHost({ accepts: (_, password) => !isRevoked && password === token });
  await host.commit('acme', 'site', hostile, { 'link-out': '/etc', 'link-up': '../../..' });
  return { env: { RUNYARD_CODE_HOST_URL: host.template } };
};

const environment = async (system: System, config: object): Promise<string> => {
  const whole = { name: 'Prepared', github_repos: [{ owner: 'acme', repo: 'site' }], ...config };
  return (await system.call<{ uid: string }>('POST', '/agent/environments', { config: whole }, 201)).uid;
};

interface Told {
  readonly state: string;
  readonly error?: string | undefined;
  readonly output: string;
  /** The steps of the setup as `KIND: NAME`, each followed by the agent's message about the step, if there is one. */
  readonly steps: readonly string[];
  /** Number of requests for git objects that the code host received. */
  readonly fetches: number;
}

async function runIn(system: System, environment_id: string, script: string, config: object = {}): Promise<Told> {
  const before = host?.requests.length ?? 0;
  const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id, ...config } });
  const run = await system.untilEnded(runId);
  const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
  const steps = events
    .filter(({ event_type }) => event_type === 'setup_step_finished')
    .map(({ payload: data = {} }) => `${data.kind}: ${data.name}${data.output_tail ? ` ${data.output_tail}` : ''}`);
  // The call fails for a run without a conversation, whose agent has sent no event.
  const conversation = await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String);
  const asked = host?.requests.slice(before) ?? [];
  return {
    state: run.state,
    error: run.status_message?.error_code,
    output: JSON.stringify(conversation),
    steps,
    fetches: asked.filter(({ method }) => method === 'POST').length,
  };
}

/** Returns the folder with the sandboxes of the worker. */
async function stateRootOf(system: System): Promise<string> {
  const line = (await system.logs()).split('\n').find((each) => each.includes('"sandboxes live here"')) ?? '{}';
  return JSON.parse(line).folder;
}

/** Overwrites the first blocks of all disks that the worker keeps, or empties the folders if it has no disks. */
async function damageWorkspaces(system: System): Promise<void> {
  const folder = path.join(await stateRootOf(system), 'kept');
  const names = await readdir(folder);
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const disk = await open(path.join(folder, name, 'disk'), 'r+').catch(() => undefined);
    await disk?.write(Buffer.alloc(65_536, 7), 0, 65_536, 0);
    await disk?.close();
    if (disk === undefined) await rm(path.join(folder, name, 'about.json'));
  }
}

const reused = expect.stringMatching(/^workspace: reused as an earlier run prepared it \([\d.]+ MB\)$/);
const kept = 'workspace: kept for later runs in this environment';

describeSystem('a worker with a cache', options, (system) => {
  /** Id of an environment. The worker has stored a prepared workspace for it. */
  let preparedUid: string;

  test('gives a later run the prepared workspace, without changes that earlier runs have made', async () => {
    await system.call('POST', '/code-hosts', { scope: 'team', kind: 'token', token }, 201);
    const setup =
      'echo "made of $RANDOM_NAME" > made; date +%s%N >> made; mkdir -p ~/.cache/tool; echo t > ~/.cache/tool/t';
    const uid = await environment(system, { setup_commands: [setup], variables: { RANDOM_NAME: 'one' } });
    const look = [
      'cat made; cat ~/.cache/tool/t; cat site/README.md; test ! -e owned && echo nothing-was-run',
      'readlink site/link-out; cat site/large.bin; ls -d site/x || echo no-submodule; git -C site status --short',
      'git -C site rev-parse --abbrev-ref HEAD@{upstream}',
      'echo changed > made; echo changed > site/README.md; echo changed > ~/later',
    ].join('\n');

    const first = await runIn(system, uid, look);
    expect(first, first.output).toMatchObject({ state: 'SUCCEEDED' });
    expect(first.steps).toEqual(['clone: acme/site', `setup_command: ${setup}`, kept]);
    expect(first.output).toContain('nothing-was-run');

    const second = await runIn(system, uid, `test ! -e ~/later && echo fresh-home\n${look}`);
    expect(second, second.output).toMatchObject({ state: 'SUCCEEDED', steps: [reused], fetches: 0 });
    const madeAt = /made of one\\n(\d+)/;
    expect(madeAt.exec(second.output)?.[1]).toBe(madeAt.exec(first.output)?.[1]);
    for (const text of ['fresh-home', 'nothing-was-run', 'no-submodule', 'origin/main', 'git-lfs.github.com/spec/v1'])
      expect(second.output).toContain(text);
    expect(second.output).not.toContain('changed\\n');

    const refreshed = await runIn(system, uid, 'cat made', { refresh_environment: true });
    expect(refreshed.steps).toEqual(['clone: acme/site', `setup_command: ${setup}`, kept]);
    expect(madeAt.exec(refreshed.output)?.[1]).not.toBe(madeAt.exec(first.output)?.[1]);
    const third = await runIn(system, uid, 'cat made');
    expect(third.steps).toEqual([reused]);
    expect(madeAt.exec(third.output)?.[1]).toBe(madeAt.exec(refreshed.output)?.[1]);
  }, 240_000);

  test("does not change git's index of a prepared workspace, so that git reads no file again", async () => {
    // Git reads files again that are as new as the index, in every workspace.
    const older = 'find site -path site/.git -prune -o -type f -exec touch -h -d "1 hour ago" {} +';
    const uid = await environment(system, { setup_commands: [older, 'git -C site status --short'] });
    const look =
      'cp site/.git/index /tmp/index; git -C site status --short; cmp /tmp/index site/.git/index && echo same';
    expect((await runIn(system, uid, look)).steps.at(-1)).toBe(kept);
    const later = await runIn(system, uid, `${look}; echo x >> site/README.md; git -C site status --short`);
    expect(later, later.output).toMatchObject({ state: 'SUCCEEDED', steps: [reused] });
    expect(later.output).toContain('same\\n M README.md');
  });

  test('fetches only new objects after a commit, and gives stored objects only to requests with a valid run token', async () => {
    await host?.commit('acme', 'site', { 'README.md': 'second\n' });
    const uid = await environment(system, {});
    const ask = 'curl -s -o /dev/null -w "%{http_code}\\n" --unix-socket /run/runyard/relay.sock';
    const address = `http://w/api/v1/worker-cache/${'a'.repeat(43)}`;
    const script = [
      'cat site/README.md; wc -l < site/.git/shallow; git -C site log --oneline | wc -l; git -C site fsck --connectivity-only',
      `${ask} ${address}; ${ask} -T /etc/passwd ${address}; ${ask} -H "authorization: Bearer " ${address}`,
    ].join('\n');
    const run = await runIn(system, uid, script);
    expect(run, run.output).toMatchObject({ state: 'SUCCEEDED', steps: ['clone: acme/site', kept] });
    // The shallow file of the clone names both commits, because the older one comes from the mirror. But the history shows only the
    // new commit.
    expect(run.output).toContain('second\\n2\\n1\\n');
    expect(run.output, run.output).toContain('401\\n401\\n401\\n');
  });

  test('leaves a run its copy of the prepared workspace if its worker is killed and the next worker adopts the sandbox', {
    tags: 'long',
  }, async () => {
    const uid = await environment(system, { setup_commands: ['echo made-before > made'] });
    expect((await runIn(system, uid, 'true')).steps.at(-1)).toBe(kept);
    const sandboxes = path.join(await stateRootOf(system), 's');
    const workspaces = async () => (await readdir(sandboxes)).map((id) => path.join(sandboxes, id, 'workspace'));
    const running = runIn(
      system,
      uid,
      'touch started; until [ -e go ]; do sleep 0.05; done; cat made; echo x > written',
    );
    await eventually('the second run', async () => (await workspaces()).some((each) => existsSync(`${each}/started`)));
    await killHard(system.worker());
    system.startWorker();
    const connections = async () => (await system.logs()).split('"worker connected"').length;
    await eventually('the next worker', async () => (await connections()) === 3);
    for (const each of await workspaces()) if (existsSync(`${each}/started`)) await writeFile(`${each}/go`, '');
    const run = await running;
    expect(run, run.output).toMatchObject({ state: 'SUCCEEDED', steps: [reused] });
    expect(run.output).toContain('made-before');
    expect((await runIn(system, uid, 'ls')).steps).toEqual([reused]);
  });

  test('does not store a workspace whose setup failed, or left a running process or temporary files', async () => {
    const failing = await environment(system, {
      setup_commands: ['test -e site/none'],
      failure_session_retention_minutes: 0,
    });
    for (let times = 0; times < 2; times++) {
      const run = await runIn(system, failing, 'true');
      expect(run).toMatchObject({ state: 'FAILED', error: 'environment_setup_failed' });
      expect(run.steps.at(-1)).toContain('setup_command: test -e site/none');
    }
    for (const [command, reason] of [
      ['sleep 300 > /dev/null 2>&1 &', 'a process of the setup still runs'],
      ['echo here > /tmp/here', 'the setup left files in /tmp'],
    ]) {
      const uid = await environment(system, { setup_commands: [command] });
      const run = await runIn(system, uid, 'true');
      expect(run.steps.at(-1)).toContain(`not kept for later runs: ${reason}`);
    }
  }, 240_000);

  test('stores the workspace of a setup that got a secret and left it in no file', async () => {
    const value = 'npm_setup-token-of-prepared-0123';
    await system.call('PUT', '/secrets/NPM_TOKEN', { value, scope: 'team' });
    const secrets = [{ name: 'NPM_TOKEN', phase: 'setup' }];
    const setup = 'echo "$NPM_TOKEN" | wc -c > size; date +%s%N > made';
    const uid = await environment(system, { secrets, setup_commands: [setup] });
    const look = [
      'cat size; echo "[$NPM_TOKEN]"; grep -rls setup-token-of-prepare[d] . ~ /tmp /dev/shm /run | wc -l',
      'cat /proc/[0-9]*/environ 2>/dev/null | grep -c setup-token-of-prepare[d] || cat made',
    ].join('\n');
    const first = await runIn(system, uid, look);
    expect(first, first.output).toMatchObject({ state: 'SUCCEEDED' });
    expect(first.steps.slice(-2)).toEqual([
      expect.stringMatching(/^workspace: searched \d+ files? of the setup for NPM_TOKEN$/),
      kept,
    ]);
    expect(first.output).toContain('33\\n[]\\n0\\n0\\n');
    const second = await runIn(system, uid, look);
    expect(second.steps).toEqual([reused]);
    expect(second.output).toContain('33\\n[]\\n0\\n0\\n');

    // Another value of the secret, and a secret that the agent gets, are another setup.
    await system.call('PUT', '/secrets/NPM_TOKEN', { value: `${value}-newer`, scope: 'team' });
    expect((await runIn(system, uid, 'true')).steps).toContain(kept);
    const ofAgent = await environment(system, { secrets: [{ name: 'NPM_TOKEN' }], setup_commands: ['true'] });
    expect((await runIn(system, ofAgent, 'true')).steps.at(-1)).toMatch(
      /not kept for later runs: the agent gets secrets \(NPM_TOKEN\)/,
    );
  }, 240_000);

  test('does not start the agent, and stores nothing, after a setup that left a secret in temporary folders and in the home folder', async () => {
    await system.call('PUT', '/secrets/NPM_TOKEN', { value: 'npm_setup-token-left-0123', scope: 'team' });
    const uid = await environment(system, {
      secrets: [{ name: 'NPM_TOKEN', phase: 'setup' }],
      setup_commands: [
        'echo "$NPM_TOKEN" > /tmp/left',
        'echo "$NPM_TOKEN" | base64 > /dev/shm/left',
        'mkdir -p ~/.config/x; echo "$NPM_TOKEN" > ~/.config/x/auth',
      ],
    });
    const runId = await system.createRun('```sh\ntrue\n```', { config: { environment_id: uid } });
    const run = await system.untilEnded(runId);
    expect(run).toMatchObject({ state: 'FAILED', status_message: { error_code: 'environment_setup_failed' } });
    for (const place of ['/tmp/left', '/dev/shm/left', '/.config/x/auth'])
      expect(run.status_message?.message).toContain(place);
    expect(run.status_message).not.toHaveProperty('session_debug_until');
  });

  test('ends all processes of a setup that got a secret', async () => {
    const uid = await environment(system, {
      secrets: [{ name: 'NPM_TOKEN', phase: 'setup' }],
      setup_commands: ['setsid env -i sleep 98765 > /dev/null 2>&1 & sleep 98764 > /dev/null 2>&1 &'],
    });
    const run = await runIn(system, uid, 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -c "9876[45]" || true');
    expect(run, run.output).toMatchObject({ state: 'SUCCEEDED' });
    expect(run.output).toContain('"0\\n"');
    expect(run.steps.at(-2)).toMatch(/; ended 2 processes of the setup$/);
  });

  test('prepares the workspace again if the stored one is damaged', { timeout: 240_000 }, async () => {
    const uid = await environment(system, { setup_commands: ['echo made > made'] });
    await runIn(system, uid, 'true');
    const folder = path.join(system.dataDir, 'worker/cache');
    for (const name of await readdir(folder)) {
      const file = path.join(folder, name);
      const bytes = await readFile(file);
      await writeFile(file, bytes.fill(7, 40));
    }
    await damageWorkspaces(system);
    const again = await runIn(system, uid, 'cat made site/README.md');
    expect(again, again.output).toMatchObject({ state: 'SUCCEEDED' });
    expect(again.steps.at(-1)).toBe(kept);
    expect(again.steps).toContain(
      'clone: acme/site The copy of an earlier run on this worker was not used: the mirror is damaged\n',
    );
    expect(again.output).toContain('made\\nsecond');
    expect((await runIn(system, uid, 'true')).steps).toEqual([reused]);
    preparedUid = uid;
  });

  test('gives no stored workspace to a run if the code host no longer allows access to its repository', async () => {
    isRevoked = true;
    const run = await runIn(system, preparedUid, 'true');
    isRevoked = false;
    expect(run).toMatchObject({ state: 'FAILED', error: 'external_authentication_required', steps: [], fetches: 0 });
  });
});

/** Id of the user `nobody`. */
const plainUser = 65534;

/** A worker that is not root has no disks for its sandboxes, and copies folders. */
const asPlainUser = async () => {
  host = await startFakeGitHost();
  await host.commit('acme', 'site', hostile, { 'link-out': '/etc', 'link-up': '../../..' });
  return { env: { RUNYARD_CODE_HOST_URL: host.template }, workerUser: plainUser };
};

describe.runIf(process.getuid?.() === 0)('as root', () => {
  describeSystem('a worker of a plain user', asPlainUser, (system) => {
    test('gives later runs copies of the prepared workspace, and prepares it again if the kept one is damaged', {
      tags: 'long',
      timeout: 240_000,
    }, async () => {
      const uid = await environment(system, { setup_commands: ['date +%s%N > made; mkdir -m 500 ~/locked'] });
      const look = 'cat made; cat site/README.md; readlink site/link-out; ls -ld ~/locked; git -C site status --short';
      const first = await runIn(system, uid, `${look}; echo changed > made; echo changed > site/README.md`);
      expect(first, first.output).toMatchObject({ state: 'SUCCEEDED' });
      expect(first.steps.at(-1), await system.logs()).toBe(kept);
      for (const _ of ['second', 'third']) {
        const later = await runIn(system, uid, `${look}; echo changed > made; echo changed > site/README.md`);
        expect(later, later.output).toMatchObject({ state: 'SUCCEEDED', steps: [reused], fetches: 0 });
        expect(/\d{19}/.exec(later.output)?.[0]).toBe(/\d{19}/.exec(first.output)?.[0]);
        for (const text of ['first', '/etc', 'dr-x------']) expect(later.output).toContain(text);
        expect(later.output).not.toContain('changed\\n');
      }
      await damageWorkspaces(system);
      const again = await runIn(system, uid, 'cat made');
      expect(again.steps.at(-1)).toBe(kept);
      expect((await runIn(system, uid, 'true')).steps).toEqual([reused]);
    });
  });
});

/** Uses secrets in every part of a run in a real sandbox. Runyard must not store, stream or return the values of these secrets. */
import { execFileSync, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { startSayingMcpServer } from './fakes/mcp-servers.ts';
import {
  certificate,
  leakAndFail,
  leakyScript,
  leakySkill,
  nameToken,
  planted,
  prompt,
  sayingServer,
  token,
} from './fakes/planted-secrets.ts';
import { describeSystemWithModels } from './support/describe-system.ts';
import { columnsHolding, filesHolding } from './support/find-planted.ts';
import { runyardFile } from './support/programs.ts';
import { oneModel } from './support/run-kinds.ts';
import { eventually } from './support/system.ts';

const runyard = await runyardFile();
let codeHost: FakeGitHost | undefined;
let remote: Awaited<ReturnType<typeof startSayingMcpServer>> | undefined;
afterAll(async () => {
  remote?.close();
  await codeHost?.close();
});

const options = async () => {
  codeHost = await startFakeGitHost();
  await codeHost.commit('acme', 'tools', {
    'skills/leaky/SKILL.md': leakySkill,
    'skills/leaky/login.sh': leakyScript,
  });
  remote = await startSayingMcpServer(`${token} ${nameToken}`);
  return {
    env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8', RUNYARD_CODE_HOST_URL: codeHost.template },
  };
};

describeSystemWithModels('secrets', options, (system, models) => {
  let runId: string;
  let serverRunId: string;
  let toolRunId: string;
  let scheduleId: string;
  const stream = new AbortController();
  let live: Promise<string>;
  const set = (name: string, value: string) =>
    system.call('PUT', `/secrets/${name}`, { value, scope: name === 'CERTIFICATE' ? 'team' : 'personal' });

  /** Stores an MCP server that has the secrets in its environment. */
  const store = async (name: string, command: string, args: string[]) => {
    const env = { DEPLOY_TOKEN: token, NAME_TOKEN: nameToken };
    return {
      id: (await system.call<{ id: string }>('POST', '/agent/mcp-servers', { name, command, args, env }, 201)).id,
    };
  };

  beforeAll(async () => {
    await set('DEPLOY_TOKEN', token);
    await set('CERTIFICATE', certificate);
    await set('NAME_TOKEN', nameToken);
    live = fetch(`${system.baseUrl()}/api/v1/agent/runs/events`, {
      headers: { authorization: `Bearer ${system.key}` },
      signal: stream.signal,
    }).then(async ({ body }) => {
      let received = '';
      try {
        for await (const chunk of body ?? []) received += Buffer.from(chunk).toString('latin1');
      } catch {
        // The stream ends when the test closes it.
      }
      return received;
    });
    const environment = await system.call<{ uid: string }>(
      'POST',
      '/agent/environments',
      {
        config: {
          name: 'E',
          secrets: [{ name: 'CERTIFICATE', as: 'file' }],
          setup_commands: ['echo "$DEPLOY_TOKEN"; cat "$CERTIFICATE" > here; rm here'],
        },
      },
      201,
    );
    const secrets = [{ name: 'DEPLOY_TOKEN' }, { name: 'NAME_TOKEN' }];
    runId = await system.createRun(prompt, {
      title: `Title ${token}`,
      mode: 'orchestrate',
      metadata: { note: token, other: encodeURIComponent(token) },
      attachments: [
        { file_name: `a-${nameToken}.txt`, mime_type: 'text/plain', data: Buffer.from(token).toString('base64') },
      ],
      config: {
        environment_id: environment.uid,
        name: `Named ${nameToken}`,
        base_prompt: `Know ${token}.`,
        secrets,
        idle_timeout_minutes: 5,
      },
    });
    await system.untilEnded(runId);
    const followUp = `Say ${token} ${nameToken}.\n\n\`\`\`sh\necho "again $DEPLOY_TOKEN"\n\`\`\``;
    await system.call('POST', `/agent/runs/${runId}/followups`, { message: followUp });
    await eventually('the follow-up', async () =>
      (await text(`/agent/runs/${runId}/conversation`)).includes('again «'),
    );
    await system.until(runId, ({ state }) => state === 'SUCCEEDED' || state === 'FAILED');
    serverRunId = await system.createRun('Use it.', {
      config: { ...oneModel, secrets, mcp_servers: { leaky: await store('Leaky', 'sh', ['-c', leakAndFail]) } },
    });
    await system.untilEnded(serverRunId);
    models.script(({ turn, toolResults }) => {
      const name = ['mcp__near__say', 'mcp__far__say'][turn];
      return name
        ? { toolCalls: [{ name, input: { about: token } }] }
        : { text: [`I got ${toolResults.join()} ${token}`] };
    });
    toolRunId = await system.createRun('Use your tools.', {
      config: {
        ...oneModel,
        secrets,
        skill_spec: 'acme/tools:leaky',
        mcp_servers: { near: await store('Near', 'node', ['-e', sayingServer]), far: { url: remote?.url } },
      },
    });
    await system.untilEnded(toolRunId);
    const schedule = await system.call<{ id: string }>(
      'POST',
      '/agent/schedules',
      { name: 'S', cron_schedule: '@yearly', prompt: `Say ${token}.`, agent_config: { secrets }, metadata: { token } },
      201,
    );
    const fired = await system.call<{ run_id: string }>('POST', `/agent/schedules/${schedule.id}/run`);
    await system.untilEnded(fired.run_id);
    scheduleId = schedule.id;
  }, 180_000);

  const text = async (at: string) => {
    const answer = await fetch(`${system.baseUrl()}/api/v1${at}`, {
      headers: { authorization: `Bearer ${system.key}` },
    });
    expect(answer.status, at).toBe(200);
    return await answer.text();
  };
  const found = (where: string) => planted.filter((each) => where.includes(each));

  test('the sandbox gets the values of secrets, and the conversation shows only placeholders', async () => {
    const conversation = await text(`/agent/runs/${runId}/conversation`);
    expect(conversation).toContain('«redacted»');
    expect(found(conversation)).toEqual([]);
  });

  test.each(['', '/timeline', '/transcript', '/events?follow=false', '/conversation'])(
    'the answer about the run does not contain the values of its secrets: %s',
    async (what) => {
      expect(found(await text(`/agent/runs/${runId}${what}`))).toEqual([]);
    },
  );

  test('stored outputs of MCP servers and stored skills do not contain the values of secrets', async () => {
    expect(await system.run(toolRunId)).toMatchObject({
      state: 'SUCCEEDED',
      agent_skill: { name: 'leaky', description: 'Uses «redacted» and «redacted».' },
    });
    for (const what of ['', '/timeline', '/transcript', '/events?follow=false', '/conversation'])
      expect(found(await text(`/agent/runs/${toolRunId}${what}`)), what).toEqual([]);
    const conversation = await text(`/agent/runs/${toolRunId}/conversation`);
    expect(conversation.match(/It says: «redacted»/g)?.length).toBeGreaterThanOrEqual(2);
    // Do not check the list of skills: it shows texts of the repository, and only to people who can also read them there.
    expect(models.requests.map(({ body }) => JSON.stringify(body)).join()).toContain('Log in with «redacted».');
  });

  test('returned artifacts do not contain the values of secrets', async () => {
    const { artifacts = [] } = await system.run(runId);
    expect(artifacts.length).toBe(3);
    expect(found(JSON.stringify(artifacts))).toEqual([]);
    for (const { artifact_type, data } of artifacts) {
      const uid = (data as { artifact_uid: string }).artifact_uid;
      expect(found(await text(`/agent/artifacts/${uid}`))).toEqual([]);
      if (artifact_type !== 'FILE') continue;
      const file = await text(`/agent/artifacts/${uid}/download`);
      expect(['x\n', `${'*'.repeat(token.length)}\n`]).toContain(file);
    }
  });

  test('answers about schedules, child runs, MCP servers and changes do not contain the values of secrets', async () => {
    const configured = await text(`/agent/runs/${serverRunId}`);
    expect(configured).toContain('no licence');
    const { runs } = await system.call<{ runs: { title: string }[] }>('GET', `/agent/runs?ancestor_run_id=${runId}`);
    expect(runs).toHaveLength(1);
    const lists = [
      '/agent/runs?limit=100',
      `/agent/schedules/${scheduleId}`,
      '/agent/schedules',
      '/audit-log',
      '/secrets',
      '/agent/mcp-servers',
    ];
    for (const list of [...lists, `/agent/runs/${serverRunId}/timeline`])
      expect(found(await text(list)), list).toEqual([]);
    expect(found(configured)).toEqual([]);
  });

  test('the streams of the team contain no value of a secret', async () => {
    stream.abort();
    const received = await live;
    expect(received).toContain(runId);
    expect(found(received)).toEqual([]);
  });

  test('the database, its files, blobs and logs contain no value of a secret', async () => {
    // As a control, check that the search finds other texts that are stored in text columns and in JSON.
    expect((await columnsHolding(system.dataDir, ['no licence'])).columns).not.toEqual([]);
    expect((await columnsHolding(system.dataDir, ['acme/tools'])).columns).toContain('public.run_requests.config');
    const { columns, rows } = await columnsHolding(system.dataDir, planted);
    expect(rows).toBeGreaterThan(100);
    expect(columns).toEqual([]);
    expect(await filesHolding(system.dataDir, planted)).toEqual([]);
    expect(found(await system.logs())).toEqual([]);
  });

  test('a command encrypts all values again with a new key while the service runs', async () => {
    const keyFile = path.join(system.dataDir, 'secrets-key');
    const before = (await readFile(keyFile, 'utf8')).trim();
    const cli = (...args: string[]) =>
      execFileSync(runyard, ['secrets', ...args], {
        env: {
          ...process.env,
          RUNYARD_DATA_DIR: system.dataDir,
          RUNYARD_BASE_URL: system.baseUrl(),
          RUNYARD_API_KEY: system.key,
        },
        encoding: 'utf8',
      });
    expect(cli('rotate-key')).toContain('still opens');
    const after = (await readFile(keyFile, 'utf8')).trim().split('\n');
    expect(after).toHaveLength(2);
    expect(after[1]).toBe(before);
    await eventually('sealing again', async () =>
      (await system.logs()).includes('the key that seals secrets has changed'),
    );
    const again = await system.createRun('Go on.\n\n```sh\necho "$DEPLOY_TOKEN" | wc -c\n```', {
      config: { secrets: [{ name: 'DEPLOY_TOKEN' }] },
    });
    expect(await system.untilEnded(again)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await text(`/agent/runs/${again}/conversation`)).toContain(`${token.length + 1}`);
  });

  test('commands set, list and delete secrets, and read values from standard input and from files', async () => {
    const env = { ...process.env, RUNYARD_BASE_URL: system.baseUrl(), RUNYARD_API_KEY: system.key };
    const run = async (args: string[], input?: string) => {
      const child = spawn(runyard, ['secrets', ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (part) => (output += part));
      child.stdin.end(input ?? '');
      const code = await new Promise((resolve) => child.on('close', resolve));
      return { code, output };
    };
    const value = 'from standard input 1';
    expect(await run(['set', 'FROM_INPUT'], `${value}\n`)).toEqual({
      code: 0,
      output: 'FROM_INPUT is set (personal)\n',
    });
    const file = path.join(system.dataDir, 'value');
    await writeFile(file, 'from a file 12345');
    expect((await run(['set', 'FROM_FILE', '--scope', 'team', '--file', file, '--agent', 'deployer'])).code).toBe(0);
    const listed = await run(['list']);
    expect(listed.output).toMatch(/FROM_FILE\tteam\t.*deployer/);
    expect(listed.output).toMatch(/FROM_INPUT\tpersonal/);
    expect(listed.output).not.toContain(value);
    const short = await run(['set', 'SHORT'], 'abc\n');
    expect(short.code).not.toBe(0);
    expect(short.output).toContain('occurs in ordinary text');
    expect((await run(['set', 'ARGUMENT', 'a value as argument'])).code).not.toBe(0);
    expect((await run(['delete', 'FROM_INPUT'])).output).toBe('FROM_INPUT is deleted\n');
    expect((await run(['list', '--json'])).output).not.toContain('FROM_INPUT');
  });
});

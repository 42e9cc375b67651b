/**
 * Tests the commands that `command-line-watch.test.ts` does not test. A real service and a real worker run, which the test started
 * with separate commands.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runyard, useApart } from './support/apart.ts';
import { runCommand, startCommand } from './support/command-line.ts';
import { processesOf } from './support/processes-of.ts';
import { runyardOfSources } from './support/programs.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/;
const here = useApart();
beforeAll(() => writeFileSync(path.join(here.folder, 'sleep.md'), '```sh\necho begun; sleep 300\n```'));

test('`run` sends attachments and metadata to the service at RUNYARD_BASE_URL and starts no local program', async () => {
  writeFileSync(path.join(here.folder, 'note.txt'), 'attached words');
  const prompt = '```sh\ncat attachments/note.txt\n```';
  const { code, output } = await here.call(
    ['run', '--title', 'Read it', '--metadata', 'ticket=A-1', '--attach', 'note.txt', '-'],
    { input: prompt },
  );
  expect(output).toContain('│ attached words');
  expect(output).not.toContain('starting');
  expect(code).toBe(0);
  const runId = uuid.exec(output)?.[0] ?? '';
  const item = JSON.parse((await here.call(['runs', 'get', runId.slice(0, 28)])).output);
  expect(item).toMatchObject({ title: 'Read it', state: 'SUCCEEDED', metadata: { ticket: 'A-1' } });
  expect((await here.call(['runs', '--limit', '5'])).output).toMatch(
    new RegExp(`^${runId}\tSUCCEEDED\t[^\t]+Z\t[\\d.]+\tRead it$`, 'm'),
  );
  expect((await here.call(['logs', 'latest'])).output).toContain('│ attached words');
  expect(existsSync(path.join(here.folder, 'client/logs'))).toBe(false);
});

test('`run --detach` prints the id of the run, which other commands can follow and cancel', async () => {
  const { output } = await here.call(['run', '--detach', '--json', '-'], {
    input: '```sh\necho begun; sleep 300\n```',
  });
  const { run_id: runId } = JSON.parse(output);
  const follow = startCommand([runyard, 'logs', runId, '--follow'], { cwd: here.folder, env: here.client });
  await follow.sees('│ begun');
  expect((await here.call(['cancel', runId])).output).toBe(`${runId} is cancelled\n`);
  await follow.exited;
  expect(follow.output()).toContain('CANCELLED');
  const again = await here.call(['cancel', runId]);
  expect(again.code).toBe(1);
  expect(again.output).toContain('invalid_request: ');
});

test('commands show a request for approval from a run with a failed setup, approve it and follow the run to its end', async () => {
  const created = await fetch(`${here.client.RUNYARD_BASE_URL}/api/v1/agent/environments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${here.client.RUNYARD_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ config: { name: 'Broken', setup_commands: ['exit 5'] } }),
  });
  const { uid } = (await created.json()) as { uid: string };
  const say = (command: string) => `\`\`\`sh\n${command}\n\`\`\``;
  const ran = await here.call(['run', '-', '--environment', uid, '--approval', 'ask'], { input: say('echo task') });
  expect(ran.output).toContain('environment_setup_failed');
  const runId = uuid.exec(ran.output)?.[0] ?? '';
  await here.call(['send', runId, say('echo seen-$((1+1))')]);
  const asked = await here.call(['logs', runId, '--follow']);
  expect(asked.output).toMatch(/asks for permission to use shell.*runyard approve/s);
  expect(asked.output).not.toContain('seen-2');
  expect((await here.call(['runs'])).output).toContain(
    `${runId}: asks for permission to use shell: echo seen-$((1+1))`,
  );
  expect((await here.call(['approve', runId])).output).toContain('approved: echo seen-$((1+1))');
  const done = await here.call(['logs', runId, '--follow']);
  expect(done.output).toContain('│ seen-2');
  expect(done.output).not.toContain('runyard approve');
});

test('`cancel` cancels several runs, named by the first characters of their ids, and prints the outcome for each run', {
  tags: 'long',
}, async () => {
  const start = async () => {
    const { output } = await here.call(['run', '--detach', '--json', '-'], { input: '```sh\nsleep 300\n```' });
    return JSON.parse(output).run_id as string;
  };
  const [first, second] = [await start(), await start()];
  const { code, output } = await here.call(['cancel', first.slice(0, 30), 'ffffffff', second]);
  expect(output).toContain(`${first} is cancelled\n`);
  expect(output).toContain(`${second} is cancelled\n`);
  expect(output).toContain('ffffffff: no run has an id that begins with ffffffff');
  expect(code).toBe(1);
  expect((await here.call(['runs', '--state', 'CANCELLED'])).output).toContain(second);
});

test('commands rerun a run, and download artifacts of a run without replacing existing files', async () => {
  const prompt = readFileSync(path.resolve(import.meta.dirname, '../examples/hello.md'), 'utf8');
  const { output } = await here.call(['run', '-', '--title', 'Hello'], { input: prompt });
  const first = uuid.exec(output)?.[0] ?? '';
  const again = await here.call(['rerun', first, '--follow']);
  expect(again.output).toContain('SUCCEEDED');
  const second = uuid.exec(again.output)?.[0] ?? '';
  expect(second).not.toBe(first);
  expect(JSON.parse((await here.call(['runs', 'get', 'latest'])).output)).toMatchObject({
    run_id: second,
    title: 'Hello',
  });
  expect((await here.call(['artifacts', 'list', second])).output).toMatch(
    /^hello\.txt\tFILE\t\d+\t[^\t]+Z\t[0-9a-f-]{36}\t$/m,
  );
  expect(await here.call(['artifacts', 'get', second, 'hello.txt'])).toEqual({ code: 0, output: 'hello.txt\n' });
  expect(readFileSync(path.join(here.folder, 'hello.txt'), 'utf8')).toContain(`Hello from run ${second}`);
  const refused = await here.call(['artifacts', 'get', first, 'hello.txt']);
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('hello.txt exists already') });
  expect((await here.call(['artifacts', 'get', first, 'hello.txt', '-o', '-'])).output).toContain(
    `Hello from run ${first}`,
  );
  expect((await here.call(['artifacts', 'get', first, 'none'])).output).toMatch(
    /has no artifact "none"; it has:\n.*hello\.txt/,
  );
});

test('commands print output that other programs can read, for example of `models` and of single requests', async () => {
  const used = await runCommand(
    [
      'sh',
      '-c',
      `eval "$(${runyardOfSources} env)"; curl -sf -H "Authorization: Bearer $WARP_API_KEY" "$OZ_API_BASE_URL/agent/models"`,
    ],
    { cwd: here.folder, env: here.client },
  );
  const { default_model_id: id } = JSON.parse(used.output);
  expect((await here.call(['models'])).output).toMatch(new RegExp(`^${id}\tdefault\t`, 'm'));
  const config = JSON.stringify({ config: { name: 'Listed', github_repos: [{ owner: 'o', repo: 'r' }] } });
  const created = await here.call(['api', 'post', '/agent/environments', '--data', '-'], { input: config });
  const { uid } = JSON.parse(created.output);
  expect((await here.call(['environments'])).output).toMatch(new RegExp(`^${uid}\tListed\t[^\t]+Z\tok\to/r$`, 'm'));
});

test('`keys create` creates a key, which works until it is deleted', async () => {
  const created = await here.call(['keys', 'create', 'mine', '--expires-in', '1d', '--json']);
  const { key, uid } = JSON.parse(created.output);
  expect((await here.call(['runs'], { env: { RUNYARD_API_KEY: key } })).code).toBe(0);
  const { output: list } = await here.call(['keys']);
  expect(list).toMatch(/mine/);
  expect(list).not.toContain(key);
  await here.call(['keys', 'delete', uid]);
  const refused = await here.call(['runs'], { env: { RUNYARD_API_KEY: key } });
  expect(refused.output).toContain('authentication_required');
  expect(refused.code).toBe(1);
});

test('commands invite a person, accept the invitation, change the role of the person and remove the person', {
  tags: 'long',
}, async () => {
  const invitation =
    (await here.call(['users', 'invite', '--role', 'viewer', '--note', 'Ada'])).output.split('\n')[0] ?? '';
  expect(invitation).toMatch(/^ryi_/);
  const { key, user, team } = JSON.parse((await here.call(['users', 'accept', invitation, 'Ada', '--json'])).output);
  const env = { RUNYARD_API_KEY: key };
  expect((await here.call(['teams'], { env })).output).toContain(team.uid);
  expect((await here.call(['run', '--detach', 'hi there'], { env })).output).toContain('needs the role member');
  expect((await here.call(['users', 'role', user.uid, 'admin'])).output).toContain('is now admin');
  expect((await here.call(['users', 'role', user.uid, 'owner'], { env })).output).toContain('above');
  expect((await here.call(['users'], { env })).output).toMatch(/Ada/);
  await here.call(['users', 'remove', user.uid]);
  expect((await here.call(['runs'], { env })).output).toContain('authentication_required');
});

test('commands act in the team that RUNYARD_TEAM names', { tags: 'long' }, async () => {
  const uid = (await here.call(['teams', 'create', 'Second'])).output.split('\n')[0] ?? '';
  const env = { RUNYARD_TEAM: uid };
  expect((await here.call(['runs', '--json'], { env })).output).toContain('"runs":[]');
  expect((await here.call(['teams', 'rename', 'Two'], { env })).output).toContain(`${uid} is now Two`);
  expect((await here.call(['teams'])).output).toMatch(/Two/);
});

test('commands choose the default model, the fallbacks and the disabled models of the team', {
  tags: 'long',
}, async () => {
  const none = 'default    the default of the service\nfallbacks  none\ndisabled   none\n';
  expect((await here.call(['models', 'default', 'runbook'])).output).toMatch(/^default {4}runbook$/m);
  expect(await here.call(['models', 'disable', 'openai/gpt-5-nano', 'openai/gpt-5-mini'])).toEqual({
    code: 0,
    output: 'default    runbook\nfallbacks  none\ndisabled   openai/gpt-5-mini, openai/gpt-5-nano\n',
  });
  const unknown = await here.call(['models', 'fallbacks', 'openai/gpt-5-nano']);
  expect(unknown).toMatchObject({ code: 1, output: expect.stringContaining('fallback_model_ids.0') });
  await here.call(['models', 'default', 'none']);
  await here.call(['models', 'enable', 'openai/gpt-5-nano', 'openai/gpt-5-mini']);
  expect(await here.call(['models', 'fallbacks'])).toEqual({ code: 0, output: none });
});

test.each([
  [['run', '--model', 'gpt-9', 'hi there'], 1, 'unknown model "gpt-9"'],
  [['runs', 'get', 'nope'], 1, '"nope" is not the id of a run'],
  [['runs', 'get', 'ffffffff'], 1, 'no run has an id that begins with ffffffff'],
  [['runs', 'get', '01900000-0000-7000-8000-000000000000'], 1, 'resource_not_found'],
  [['api', 'GET', '/agent/runs/x'], 1, '"error_code":"resource_not_found"'],
  [['api', 'POST', '/agent/runs', '--data', '{}'], 1, '400 invalid_request'],
  [['completion', 'tcsh'], 2, 'Allowed choices are bash, zsh, fish'],
  [['runs', '--limit', '0'], 2, 'It must be a whole number from 1 to 500'],
  [['runs', '--state', 'DONE'], 2, 'It must be one of QUEUED'],
  [['run', 'missing.md'], 1, 'there is no file missing.md'],
  [['frobnicate'], 2, "unknown command 'frobnicate'"],
  [['run'], 2, 'a prompt is needed: a file, - for standard input, or'],
])('%j fails with exit code %d and says why', async (args, code, words) => {
  const result = await here.call(args);
  expect(result.output).toContain(words);
  expect(result.output).not.toMatch(/\n +at /);
  expect(result.code).toBe(code);
});

test('a command prints the address of the service if the service does not answer', async () => {
  const result = await here.call(['runs'], { env: { RUNYARD_BASE_URL: 'http://127.0.0.1:9' } });
  expect(result.output).toContain('http://127.0.0.1:9 does not answer');
  expect(result.code).toBe(1);
});

test('`doctor` lists the parts of the installation, and exits with 1 if no run could succeed', async () => {
  const { RUNYARD_BASE_URL: _, ...own } = here.client;
  const good = await runCommand([runyard, 'doctor', '--json'], {
    cwd: here.folder,
    env: { ...own, RUNYARD_PORT: '0' },
  });
  const { works, findings } = JSON.parse(good.output);
  const names = findings.map((finding: { name: string }) => finding.name);
  for (const name of ['Node', 'database', 'data folder', 'port', 'sandbox', 'harness oz', 'models', 'git'])
    expect(names).toContain(name);
  expect(good.code).toBe(works ? 0 : 1);
  const running = await runCommand([runyard, 'doctor', '--json'], {
    cwd: here.folder,
    env: { RUNYARD_DATA_DIR: path.join(here.folder, 'service'), RUNYARD_OPENAI_API_KEY: 'sk-not-in-the-service' },
  });
  const details = (name: string) =>
    JSON.parse(running.output).findings.flatMap((each: { name: string; detail: string }) =>
      each.name === name ? [each.detail] : [],
    );
  expect(details('models')).toEqual([expect.stringContaining('running service: none, so runs use `runbook`')]);
  expect(details('after restart')).toEqual([expect.stringContaining('RUNYARD_OPENAI_API_KEY is set here, not in')]);
  expect(running.output).not.toContain('sk-not-in-the-service');
  const bad = await runCommand([runyard, 'doctor'], {
    cwd: here.folder,
    env: { ...own, RUNYARD_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' },
  });
  expect(bad.code).toBe(1);
  expect(bad.output).toContain('✗ database');
  expect(bad.output).not.toContain('hunter2');
});

test('`run` exits with 130 at the second Ctrl-C if the service does not answer the request to cancel the run', async () => {
  const running = startCommand([runyard, 'run', 'sleep.md'], { cwd: here.folder, env: here.client });
  await running.sees('│ begun');
  const [program] = processesOf(here.folder).filter(({ command }) =>
    /\/service\.mjs|service\/src\/main\.ts/.test(command),
  );
  process.kill(program?.pid ?? 0, 'SIGSTOP');
  try {
    running.child.kill('SIGINT');
    await running.sees('cancelling the run');
    running.child.kill('SIGINT');
    expect(await running.exited).toBe(130);
  } finally {
    process.kill(program?.pid ?? 0, 'SIGCONT');
  }
  const runId = uuid.exec(running.output())?.[0] ?? '';
  expect(running.output()).toContain(`left; look at the run with: bin/runyard logs ${runId}`);
  await here.call(['cancel', runId]);
});

test('commands show and set the budget, and show the usage', { tags: 'long' }, async () => {
  const shown = await here.call(['budget', 'show']);
  expect(shown.output).toMatch(/monthly limit {6}none\ncredits left {7}not used/);
  const set = await here.call(['budget', 'set', '--monthly', '12.5', '--credits', '5000', '--json']);
  expect(JSON.parse(set.output)).toMatchObject({ monthly_limit_usd: 12.5, credits: 5000 });
  const cleared = await here.call(['budget', 'set', '--monthly', 'none', '--credits', 'none']);
  expect(cleared.output).toContain('not used');
  expect((await here.call(['budget', 'set', '--monthly', 'much'])).code).toBe(2);
  const usage = await here.call(['usage', '--by', 'day', 'model', '--json']);
  expect(JSON.parse(usage.output)).toEqual({
    from: expect.any(String),
    to: expect.any(String),
    scope: 'team',
    storage: { bytes: expect.any(Number), max_bytes: 100 * 1024 ** 3 },
    usage: [],
  });
});

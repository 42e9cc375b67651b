/** The other commands, against a real service and worker that were started apart, as on two machines. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { processesOf } from './support/processes-of.ts';

const runyard = path.resolve(import.meta.dirname, '../bin/runyard');
const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/;
let folder: string;
/** The caller's environment: address and key, no data folder of a service. */
let client: Record<string, string>;
let service: RunningCommand;
let worker: RunningCommand;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'runyard-apart-'));
  service = startCommand([runyard, 'service'], {
    cwd: folder,
    env: { RUNYARD_DATA_DIR: path.join(folder, 'service'), RUNYARD_PORT: '0' },
  });
  await service.sees('Runyard is running');
  const { origin } = JSON.parse(readFileSync(path.join(folder, 'service/supervisor.json'), 'utf8'));
  const key = readFileSync(path.join(folder, 'service/bootstrap-key'), 'utf8').trim();
  client = { RUNYARD_BASE_URL: origin, RUNYARD_API_KEY: key, RUNYARD_DATA_DIR: path.join(folder, 'client') };
  worker = startCommand([runyard, 'worker'], {
    cwd: folder,
    env: { ...client, RUNYARD_DATA_DIR: path.join(folder, 'worker') },
  });
  await worker.sees(`a worker for ${origin} runs`);
  writeFileSync(path.join(folder, 'sleep.md'), '```sh\necho begun; sleep 300\n```');
}, 90_000);

afterAll(async () => {
  service.child.kill('SIGTERM');
  worker.child.kill('SIGINT');
  await Promise.all([service.exited, worker.exited]);
  endCommands();
  expect(processesOf(folder)).toEqual([]);
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

const call = (args: string[], more: { env?: Record<string, string>; input?: string } = {}) =>
  runCommand([runyard, ...args], {
    cwd: folder,
    env: { ...client, ...more.env },
    ...(more.input ? { input: more.input } : {}),
  });

test('sends a run with attachments and metadata to the service of RUNYARD_BASE_URL and starts no program here', async () => {
  writeFileSync(path.join(folder, 'note.txt'), 'attached words');
  const prompt = '```sh\ncat attachments/note.txt\n```';
  const { code, output } = await call(
    ['run', '--title', 'Read it', '--metadata', 'ticket=A-1', '--attach', 'note.txt', '-'],
    { input: prompt },
  );
  expect(output).toContain('│ attached words');
  expect(output).not.toContain('starting');
  expect(code).toBe(0);
  const runId = uuid.exec(output)?.[0] ?? '';
  const item = JSON.parse((await call(['runs', 'get', runId])).output);
  expect(item).toMatchObject({ title: 'Read it', state: 'SUCCEEDED', metadata: { ticket: 'A-1' } });
  expect((await call(['runs', '--limit', '5'])).output).toMatch(
    new RegExp(`^${runId}\tSUCCEEDED\t[^\t]+Z\tPT[^\t]+\tRead it$`, 'm'),
  );
  expect((await call(['logs', 'latest'])).output).toContain('│ attached words');
  const short = runId.slice(0, 28);
  expect((await call(['logs', short])).output).toContain('│ attached words');
  expect((await call(['logs', runId])).output).toContain('│ attached words');
  expect(existsSync(path.join(folder, 'client/logs'))).toBe(false);
});

test('prints the id of a detached run, which can be followed and cancelled', async () => {
  const { output } = await call(['run', '--detach', '--json', '-'], { input: '```sh\necho begun; sleep 300\n```' });
  const { run_id: runId } = JSON.parse(output);
  const follow = startCommand([runyard, 'logs', runId, '--follow'], { cwd: folder, env: client });
  await follow.sees('│ begun');
  expect((await call(['cancel', runId])).output).toBe(`${runId} is cancelled\n`);
  await follow.exited;
  expect(follow.output()).toContain('CANCELLED');
  const again = await call(['cancel', runId]);
  expect(again.code).toBe(1);
  expect(again.output).toContain('invalid_request: ');
});

test('shows a question from the sandbox of a failed setup, approves it and follows the run to its end', async () => {
  const created = await fetch(`${client.RUNYARD_BASE_URL}/api/v1/agent/environments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.RUNYARD_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ config: { name: 'Broken', setup_commands: ['exit 5'] } }),
  });
  const { uid } = (await created.json()) as { uid: string };
  const say = (command: string) => `\`\`\`sh\n${command}\n\`\`\``;
  const ran = await call(['run', '-', '--environment', uid, '--approval', 'ask'], { input: say('echo task') });
  expect(ran.output).toContain('environment_setup_failed');
  const runId = uuid.exec(ran.output)?.[0] ?? '';
  await call(['send', runId, say('echo seen-$((1+1))')]);
  const asked = await call(['logs', runId, '--follow']);
  expect(asked.output).toMatch(/asks for permission to use shell.*runyard approve/s);
  expect(asked.output).not.toContain('seen-2');
  expect((await call(['runs'])).output).toContain(`${runId} asks for permission to use shell: echo seen-$((1+1))`);
  expect((await call(['approve', runId])).output).toContain('approved: echo seen-$((1+1))');
  const done = await call(['logs', runId, '--follow']);
  expect(done.output).toContain('│ seen-2');
  expect(done.output).not.toContain('runyard approve');
});

test('cancels several runs, named by the beginning of their ids, and says of each what became of it', async () => {
  const start = async () => {
    const { output } = await call(['run', '--detach', '--json', '-'], { input: '```sh\nsleep 300\n```' });
    return JSON.parse(output).run_id as string;
  };
  const [first, second] = [await start(), await start()];
  const { code, output } = await call(['cancel', first.slice(0, 30), 'ffffffff', second]);
  expect(output).toContain(`${first} is cancelled\n`);
  expect(output).toContain(`${second} is cancelled\n`);
  expect(output).toContain('ffffffff: no run has an id that begins with ffffffff');
  expect(code).toBe(1);
  expect((await call(['runs', '--state', 'CANCELLED'])).output).toContain(second);
});

test('runs a run again, and downloads what it leaves behind without replacing files', async () => {
  const prompt = readFileSync(path.resolve(import.meta.dirname, '../examples/hello.md'), 'utf8');
  const { output } = await call(['run', '-', '--title', 'Hello'], { input: prompt });
  const first = uuid.exec(output)?.[0] ?? '';
  const again = await call(['rerun', first, '--follow']);
  expect(again.output).toContain('SUCCEEDED');
  const second = uuid.exec(again.output)?.[0] ?? '';
  expect(second).not.toBe(first);
  expect(JSON.parse((await call(['runs', 'get', 'latest'])).output)).toMatchObject({ run_id: second, title: 'Hello' });
  expect((await call(['artifacts', 'list', second])).output).toMatch(
    /^hello\.txt\tFILE\t\d+\t[^\t]+Z\t[0-9a-f-]{36}$/m,
  );
  expect(await call(['artifacts', 'get', second, 'hello.txt'])).toEqual({ code: 0, output: 'hello.txt\n' });
  expect(readFileSync(path.join(folder, 'hello.txt'), 'utf8')).toContain(`Hello from run ${second}`);
  const refused = await call(['artifacts', 'get', first, 'hello.txt']);
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('hello.txt exists already') });
  expect((await call(['artifacts', 'get', first, 'hello.txt', '-o', '-'])).output).toContain(`Hello from run ${first}`);
  expect((await call(['artifacts', 'get', first, 'none'])).output).toMatch(
    /has no artifact "none"; it has:\n.*hello\.txt/,
  );
});

test('gives other programs what they need: variables, models, environments and single requests', async () => {
  const used = await runCommand(
    [
      'sh',
      '-c',
      `eval "$(${runyard} env)"; curl -sf -H "Authorization: Bearer $WARP_API_KEY" "$OZ_API_BASE_URL/agent/models"`,
    ],
    { cwd: folder, env: client },
  );
  const { default_model_id: id } = JSON.parse(used.output);
  expect((await call(['models'])).output).toMatch(new RegExp(`^${id}\tdefault\t`, 'm'));
  const config = JSON.stringify({ config: { name: 'Listed', github_repos: [{ owner: 'o', repo: 'r' }] } });
  const created = await call(['api', 'post', '/agent/environments', '--data', '-'], { input: config });
  const { uid } = JSON.parse(created.output);
  expect((await call(['environments'])).output).toMatch(new RegExp(`^${uid}\tListed\t[^\t]+Z\tok\to/r$`, 'm'));
});

test('prints with --json one event per line, then the run, and nothing else', async () => {
  const { output } = await call(['run', '--json', '-'], { input: '```sh\nprintf "\\033[31mred\\n"\n```' });
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.some((line) => line.type === 'conversation')).toBe(true);
  expect(lines.at(-1)).toMatchObject({ type: 'run', run: { state: 'SUCCEEDED' } });
  expect(output).not.toContain('\u001b');
});

test('accepts a key that was created until it is deleted', async () => {
  const created = await call(['keys', 'create', 'mine', '--expires-in', '1d', '--json']);
  const { key, uid } = JSON.parse(created.output);
  expect((await call(['runs'], { env: { RUNYARD_API_KEY: key } })).code).toBe(0);
  const { output: list } = await call(['keys']);
  expect(list).toMatch(/mine/);
  expect(list).not.toContain(key);
  await call(['keys', 'delete', uid]);
  const refused = await call(['runs'], { env: { RUNYARD_API_KEY: key } });
  expect(refused.output).toContain('authentication_required');
  expect(refused.code).toBe(1);
});

test('invites a person, who accepts, gets a role and is removed', async () => {
  const invitation = (await call(['users', 'invite', '--role', 'viewer', '--note', 'Ada'])).output.split('\n')[0] ?? '';
  expect(invitation).toMatch(/^ryi_/);
  const { key, user, team } = JSON.parse((await call(['users', 'accept', invitation, 'Ada', '--json'])).output);
  const env = { RUNYARD_API_KEY: key };
  expect((await call(['teams'], { env })).output).toContain(team.uid);
  expect((await call(['run', '--detach', 'hi there'], { env })).output).toContain('needs the role member');
  expect((await call(['users', 'role', user.uid, 'admin'])).output).toContain('is now admin');
  expect((await call(['users', 'role', user.uid, 'owner'], { env })).output).toContain('above');
  expect((await call(['users'], { env })).output).toMatch(/Ada/);
  await call(['users', 'remove', user.uid]);
  expect((await call(['runs'], { env })).output).toContain('authentication_required');
});

test('acts in the team that RUNYARD_TEAM names', async () => {
  const uid = (await call(['teams', 'create', 'Second'])).output.split('\n')[0] ?? '';
  const env = { RUNYARD_TEAM: uid };
  expect((await call(['runs', '--json'], { env })).output).toContain('"runs":[]');
  expect((await call(['teams', 'rename', 'Two'], { env })).output).toContain(`${uid} is now Two`);
  expect((await call(['teams'])).output).toMatch(/Two/);
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
  [['run'], 2, "missing required argument 'prompt'"],
])('%j fails with exit code %d and says why', async (args, code, words) => {
  const result = await call(args);
  expect(result.output).toContain(words);
  expect(result.output).not.toMatch(/\n +at /);
  expect(result.code).toBe(code);
});

test('names the address of a service that does not answer', async () => {
  const result = await call(['runs'], { env: { RUNYARD_BASE_URL: 'http://127.0.0.1:9' } });
  expect(result.output).toContain('http://127.0.0.1:9 does not answer');
  expect(result.code).toBe(1);
});

test('finds the same runs after an export of the running service is imported elsewhere', {
  timeout: 120_000,
}, async () => {
  await call(['run', '-', '--title', 'Exported'], { input: '```sh\ntrue\n```' });
  const file = path.join(folder, 'all.export');
  const from = { RUNYARD_DATA_DIR: path.join(folder, 'service') };
  expect((await call(['export', file], { env: from })).code).toBe(0);
  expect((await call(['export', file], { env: from })).output).toContain('exists already');
  expect((await call(['import', file], { env: from })).output).toContain('stop it first');
  const other = { RUNYARD_DATA_DIR: path.join(folder, 'other'), RUNYARD_PORT: '0' };
  expect((await call(['import', file], { env: other })).code).toBe(0);
  const second = startCommand([runyard, 'service'], {
    cwd: folder,
    env: { ...other, RUNYARD_BOOTSTRAP_KEY: client.RUNYARD_API_KEY ?? '' },
  });
  await second.sees('Runyard is running');
  const { RUNYARD_BASE_URL: _, ...here } = client;
  const list = await runCommand([runyard, 'runs'], { cwd: folder, env: { ...here, ...other } });
  expect(list.output).toContain('Exported');
  second.child.kill('SIGTERM');
  expect(await second.exited).toBe(0);
});

test('lists with doctor what the machine has, and exits with 1 when no run could work', {
  timeout: 60_000,
}, async () => {
  const { RUNYARD_BASE_URL: _, ...here } = client;
  const good = await runCommand([runyard, 'doctor', '--json'], { cwd: folder, env: { ...here, RUNYARD_PORT: '0' } });
  const { works, findings } = JSON.parse(good.output);
  const names = findings.map((finding: { name: string }) => finding.name);
  for (const name of ['Node', 'database', 'data folder', 'port', 'sandbox', 'harness oz', 'models', 'git'])
    expect(names).toContain(name);
  expect(good.code).toBe(works ? 0 : 1);
  const running = await runCommand([runyard, 'doctor', '--json'], {
    cwd: folder,
    env: { RUNYARD_DATA_DIR: path.join(folder, 'service'), RUNYARD_OPENAI_API_KEY: 'sk-not-in-the-service' },
  });
  const details = (name: string) =>
    JSON.parse(running.output).findings.flatMap((each: { name: string; detail: string }) =>
      each.name === name ? [each.detail] : [],
    );
  expect(details('models')).toEqual([expect.stringContaining('running service: none, so runs use `runbook`')]);
  expect(details('after restart')).toEqual([expect.stringContaining('RUNYARD_OPENAI_API_KEY is set here, not in')]);
  expect(running.output).not.toContain('sk-not-in-the-service');
  const bad = await runCommand([runyard, 'doctor'], {
    cwd: folder,
    env: { ...here, RUNYARD_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' },
  });
  expect(bad.code).toBe(1);
  expect(bad.output).toContain('✗ database');
  expect(bad.output).not.toContain('hunter2');
});

test('exits with 130 at a second Ctrl-C when the cancel of the run is not answered', async () => {
  const running = startCommand([runyard, 'run', 'sleep.md'], { cwd: folder, env: client });
  await running.sees('│ begun');
  const [program] = processesOf(folder).filter(({ command }) => command.includes('packages/service/src/main.ts'));
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
  await call(['cancel', runId]);
});

test('ends logs with exit code 0 when its reader closes the pipe', async () => {
  const { output } = await call(['run', '--detach', '-'], {
    input: '```sh\nwhile true; do echo again; sleep 0.2; done\n```',
  });
  const runId = uuid.exec(output)?.[0] ?? '';
  const script = `{ ${runyard} logs ${runId} --follow; echo "exit $?" >&2; } | head -n 1`;
  const piped = await runCommand(['sh', '-c', script], { cwd: folder, env: client });
  expect(piped.output).toContain('exit 0');
  expect(piped.output).not.toContain('EPIPE');
  await call(['cancel', runId]);
});

test('finishes the current run when the worker gets SIGTERM', { timeout: 60_000 }, async () => {
  const running = startCommand([runyard, 'run', '-'], {
    cwd: folder,
    env: client,
    input: '```sh\necho begun; sleep 2; echo finished\n```',
  });
  await running.sees('│ begun');
  worker.child.kill('SIGTERM');
  await worker.sees('finishing the runs it has');
  expect(await running.exited).toBe(0);
  expect(running.output()).toContain('│ finished');
  expect(await worker.exited).toBe(0);
  await vi.waitFor(() => expect(processesOf(path.join(folder, 'worker'))).toEqual([]), { timeout: 15_000 });
});

test('waits with down for the runs of a worker that was started alone, longer than for other programs', {
  timeout: 180_000,
}, async () => {
  const env = { ...client, RUNYARD_DATA_DIR: path.join(folder, 'drained'), RUNYARD_WORKER_NAME: 'drained' };
  const drained = startCommand([runyard, 'worker'], { cwd: folder, env });
  await drained.sees('a worker for');
  const created = await fetch(`${client.RUNYARD_BASE_URL}/api/v1/agent/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.RUNYARD_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      prompt: '```sh\necho begun; sleep 50; echo finished\n```',
      config: { worker_host: 'drained', idle_timeout_minutes: 0 },
    }),
  });
  const { run_id: runId } = (await created.json()) as { run_id: string };
  const follow = startCommand([runyard, 'logs', runId, '--follow'], { cwd: folder, env: client });
  await follow.sees('│ begun');
  const stopped = await runCommand([runyard, 'down'], { cwd: folder, env });
  expect(stopped.output).toContain('the worker finishes the runs that it has');
  expect(stopped.code).toBe(0);
  expect(await drained.exited).toBe(0);
  await follow.exited;
  expect(follow.output()).toContain('│ finished');
});

test('ends with down --force the runs of a worker that was started alone', { timeout: 120_000 }, async () => {
  const env = { ...client, RUNYARD_DATA_DIR: path.join(folder, 'ended'), RUNYARD_WORKER_NAME: 'ended' };
  const worker = startCommand([runyard, 'worker'], { cwd: folder, env });
  await worker.sees('a worker for');
  const stopped = await runCommand([runyard, 'down', '--force'], { cwd: folder, env });
  expect(stopped).toMatchObject({ code: 0, output: 'stopped\n' });
  expect(await worker.exited).toBe(0);
});

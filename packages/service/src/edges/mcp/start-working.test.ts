import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectMcp } from '../../../test/mcp.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const mcp = (key: string) => connectMcp(`${service.baseUrl}/api/v1/mcp/factory`, key);
const factories = await mcp(service.key);
await factories.client.listTools();
const { uid: factory_uid } = await factories.json<{ uid: string }>('create_factory', { name: 'Start' });

interface Started {
  readonly uid: string;
  readonly start_working?: {
    readonly branch: string;
    readonly commands: readonly string[];
    readonly notified_run_id?: string;
  };
}
const start = async (given: Record<string, unknown>) =>
  (await factories.json<Started>('get_task', given)).start_working;

/** Sends a task. Returns its run, which an agent has begun, with a pull request for each of the branches. */
async function task(title: string, branches: readonly string[] = []) {
  const { run_id } = await factories.json<{ run_id: string }>('send_task', { factory_uid, title, note: 'Do it.' });
  const { runToken } = await service.claimRun(run_id);
  for (const [index, branch] of branches.entries()) {
    const data = { branch, url: `https://code.example/acme/app/pull/${index + 1}` };
    const body = { artifact_type: 'PULL_REQUEST', data };
    await service.request('POST', '/harness-support/report-artifact', { key: runToken, body });
  }
  return run_id;
}
const followups = async (runId: string) =>
  await service.deps.db.query<{ message: string }>('SELECT message FROM followups WHERE run_id = $1', [runId]);

test('the suggested commands make a worktree of a new branch, or of the branch of the pull request', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "it's a clone-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const sh = (command: string) => execFileSync('sh', ['-ec', command], { cwd: folder, encoding: 'utf8' });
  const author = '-c user.name=a -c user.email=a@example.com';
  sh(`git init -qb main origin && git -C origin ${author} commit -qm one --allow-empty && git -C origin branch fix/total
    git clone -q origin clone`);
  const clone = path.join(folder, 'clone');
  const current = (name: string) => sh(`git -C ${name} branch --show-current`).trim();

  const fresh = await start({
    run_id: await task('Round; $(touch x) the total!'),
    start_working: true,
    workspace_dir: clone,
  });
  expect(fresh?.branch).toMatch(/^task\/round-touch-x-the-total-[A-Za-z0-9]{8}$/);
  for (const command of fresh?.commands ?? []) sh(command);
  expect(current(fresh?.branch.replace('/', '-') ?? '')).toBe(fresh?.branch);

  const kept = await start({ run_id: await task('b', ['fix/total']), start_working: true, workspace_dir: clone });
  expect(kept?.branch).toBe('fix/total');
  for (const command of kept?.commands ?? []) sh(command);
  expect(current('fix-total')).toBe('fix/total');
});

test('a branch that an agent reported with characters of a shell is not suggested', async () => {
  const run_id = await task('Bad', ['--upload-pack=x', '$(id)', "a';id;'", 'a..b']);
  const suggested = await start({ run_id, start_working: true });
  expect(suggested?.branch).toMatch(/^task\/bad-/);
  expect(suggested?.commands).toHaveLength(2);
});

test('the foreman gets one message with the rights of the caller, and none without notify_foreman', async () => {
  const run_id = await task('Notify');
  await start({ run_id, start_working: true });
  expect(await followups(run_id)).toEqual([]);
  const given = { run_id, start_working: true, branch: 'mine', notify_foreman: true, note: 'I take over.' };
  expect(await start(given)).toMatchObject({ branch: 'mine', notified_run_id: run_id });
  await start(given);
  expect(await followups(run_id)).toEqual([{ message: 'I take over.\nBranch: mine' }]);
  const viewer = await mcp(await service.newKey({ role: 'viewer' }));
  expect((await viewer.call('get_task', { ...given, note: 'x' })).texts).toEqual([
    expect.stringContaining('The foreman was not notified'),
  ]);
  expect((await viewer.call('get_task', { run_id, start_working: true })).isError).toBe(false);
  const theirs = await mcp(service.otherKey);
  expect((await theirs.call('get_task', given)).isError).toBe(true);
  expect(await followups(run_id)).toHaveLength(1);
});

test.each([
  [{ start_working: 'yes' }, 'start_working'],
  [{ branch: 'a' }, 'only with start_working'],
  [{ start_working: true, branch: '-b' }, 'branch'],
  [{ start_working: true, branch: 'a.lock' }, 'branch'],
  [{ start_working: true, workspace_dir: 'a\nb' }, 'workspace_dir'],
  [{ start_working: true, note: 'a' }, 'only with notify_foreman'],
  [{ start_working: true, notify_foreman: true, note: 'a'.repeat(20_001) }, 'note'],
])('get_task with %o is refused', async (given, reason) => {
  const { uid } = await factories.json<Started>('get_task', { run_id: await firstRun });
  const answer = await factories.call('get_task', { factory_task_uid: uid, ...given });
  expect([answer.isError, answer.texts]).toEqual([true, [expect.stringContaining(reason)]]);
});
const firstRun = task('Refused');

import { execFileSync } from 'node:child_process';
import type { RunCheck } from '@runyard/contract/runs/checks';
import { expect, test } from 'vitest';
import { testFolder } from '../test/agent.ts';
import { ended, fake, of, scripted, sh, start } from '../test/run.ts';
import { checkDiff, readBaseCommits } from './checks/check-diff.ts';
import { checkEnvironment } from './checks/run-checks.ts';

const withChecks = (checks: RunCheck[], attempts?: number) => ({
  agent_config: { checks, ...(attempts === undefined ? {} : { check_attempts: attempts }) },
});
const finished = () => of('check_finished').map(({ name, state, attempt }) => `${name} ${state} ${attempt}`);

test('a run whose checks pass reports each of them, with its time and the end of its output', async () => {
  await start({
    ...withChecks([
      { name: 'one', command: 'echo fine' },
      { name: 'two', command: 'test -f made' },
    ]),
    ...sh('touch made'),
  });
  await ended();
  expect(of('check_started').map(({ name }) => name)).toEqual(['one', 'two']);
  expect(of('check_finished')[0]).toMatchObject({ state: 'passed', exit_code: 0, output_tail: 'fine\n', attempt: 1 });
  const passed = [
    { name: 'one', passed: true },
    { name: 'two', passed: true },
  ];
  expect(fake.finished).toMatchObject([{ success: true, checks: passed }]);
});

test('a failed check goes back to the agent with its output, as often as the configuration says, and then fails the run', async () => {
  await start({ ...withChecks([{ name: 'tests', command: 'echo "1 test failed"; exit 3' }], 2), ...scripted('hello') });
  await ended();
  expect(finished()).toEqual(['tests failed 1', 'tests failed 2', 'tests failed 3']);
  expect(of('turn_started').at(-1)?.prompt).toContain('1 test failed');
  expect(fake.finished).toMatchObject([
    {
      success: false,
      error: {
        code: 'checks_failed',
        message: expect.stringContaining('The check tests failed: its command exited with code 3'),
      },
    },
  ]);
});

test('a failed check of a runbook fails the run at once, and later checks do not run', async () => {
  await start({
    ...withChecks([
      { name: 'a', command: 'false' },
      { name: 'b', command: 'true' },
    ]),
    ...sh('true'),
  });
  await ended();
  expect(finished()).toEqual(['a failed 1']);
  expect(fake.finished).toMatchObject([{ success: false, error: { code: 'checks_failed' } }]);
});

test('a turn with the mode plan runs no checks', async () => {
  await start({ ...withChecks([{ name: 'a', command: 'false' }]), ...scripted('hello'), mode: 'plan' });
  await ended();
  expect(of('check_started')).toEqual([]);
  expect(fake.finished).toMatchObject([{ success: true }]);
});

test('a check that never ends is killed with all its processes, and one that prints without end is bounded', async () => {
  const never = 'sleep 4714.5 & setsid sleep 4714.5 & sleep 4714.5';
  await start({ ...withChecks([{ name: 'never', command: never, timeout_seconds: 1 }]), ...sh('true') });
  await ended();
  expect(fake.finished[0]?.error?.message).toContain('was killed after 1 s');
  const { findProcesses } = await import('../../worker/src/state/processes.ts');
  expect(await findProcesses('cmdline', '4714.5')).toEqual([]);
  await fake.close();
  const long = 'head -c 100000000 /dev/zero | tr "\\0" x; echo end';
  await start({ ...withChecks([{ name: 'long', command: long }]), ...sh('true') });
  await ended();
  const tail = of('check_finished')[0]?.output_tail ?? '';
  expect(tail.endsWith('end\n')).toBe(true);
  expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(8 * 1024);
});

test('processes that a check leaves behind are killed when its command has ended', async () => {
  const leaves = 'setsid sleep 4715.5 > /dev/null 2>&1 & echo $! > pid';
  const isGone = '! grep -q "^State:.*[SRD] (" "/proc/$(cat pid)/status"';
  const checks = [
    { name: 'leaves', command: leaves },
    { name: 'is gone', command: isGone },
  ];
  await start({ ...withChecks(checks), ...sh('true') });
  await ended();
  expect(finished()).toEqual(['leaves passed 1', 'is gone passed 1']);
});

test('an agent that puts programs into its folders or hooks into a repository does not change what a check runs', async () => {
  const attack = [
    'mkdir -p bin node_modules/.bin && printf "#!/bin/sh\\nexit 0\\n" > bin/false && cp bin/false node_modules/.bin/ && chmod +x bin/false node_modules/.bin/false',
    'git init -q . && printf "#!/bin/sh\\ntouch hooked\\n" > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit',
    'mkdir -p "$HOME/x" && cp bin/false "$HOME/x/"',
  ];
  const check = 'git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && test ! -e hooked && ! false';
  await start({ ...withChecks([{ name: 'honest', command: check }]), ...sh(...attack) });
  await ended();
  expect(finished()).toEqual(['honest passed 1']);
});

test('the PATH of a check has no folders that the harness can write', () => {
  const env = { PATH: '/evil', GIT_CONFIG_COUNT: '1', BASH_ENV: '/w/x' };
  const made = checkEnvironment(env, {
    path: '/usr/bin:/w/node_modules/.bin:bin:/home/r/bin:/bin',
    folders: ['/w', '/home/r', undefined],
  });
  expect(made).toMatchObject({ PATH: '/usr/bin:/bin', GIT_CONFIG_COUNT: '3', GIT_CONFIG_KEY_1: 'core.hooksPath' });
  expect(made).not.toHaveProperty('BASH_ENV');
});

test('a check of an artifact passes only if the run has it', async () => {
  const listing = (artifacts: object[]) => ({
    prepare: (service: typeof fake) => {
      service.more = async ({ method, path }) =>
        `${method} ${path}` === 'GET /artifacts' ? { status: 200, value: { artifacts } } : undefined;
    },
  });
  const task = { ...withChecks([{ name: 'report', artifact: 'report.txt' }]), ...sh('true') };
  await start(task, listing([{ artifact_type: 'FILE', title: 'Report', file_name: 'report.txt' }]));
  await ended();
  expect(finished()).toEqual(['report passed 1']);
  await fake.close();
  await start(task, listing([]));
  await ended();
  expect(fake.finished[0]?.error?.message).toContain('the run has no artifact report.txt');
});

test.each<[string, RunCheck['diff'], string, string]>([
  ['within the limits', { max_files: 1, max_lines: 2, paths: ['src/**'] }, 'mkdir -p src && echo a > src/a', ''],
  ['with too many files', { max_files: 1 }, 'echo a > a; echo b > b', '2 files differ; the limit is 1'],
  ['with too many lines', { max_lines: 2 }, 'seq 3 > a', '3 lines differ; the limit is 2'],
  ['outside of the paths', { paths: ['src/**'] }, 'echo a > test.js', 'test.js differs; only src/** may differ'],
  ['with a binary file', { max_lines: 9 }, 'printf "a\\0b" > a', 'its lines cannot be counted'],
])('a check of the changes %s', async (_, diff, change, error) => {
  await start({ ...withChecks([{ name: 'diff', diff }]), ...sh(`git init -q repo && cd repo && ${change}`) });
  await ended();
  const [check] = of('check_finished');
  expect(check?.error ?? '').toContain(error);
  expect(check?.state).toBe(error === '' ? 'passed' : 'failed');
});

test('a check of the changes fails without a repository, and never passes if nothing is known', async () => {
  await start({ ...withChecks([{ name: 'diff', diff: { max_files: 9 } }]), ...sh('true') });
  await ended();
  expect(of('check_finished')[0]?.error).toContain('has no git repository');
});

test('a check of the changes fails if the agent removed the repository or changed its base commit, or moved a file into the paths', async () => {
  const workspace = testFolder();
  const { signal } = new AbortController();
  const sh = (script: string) => execFileSync('sh', ['-ec', script], { cwd: workspace, encoding: 'utf8' });
  const commit = 'git -C repo -c user.name=a -c user.email=a@b commit -q';
  sh(`git init -q repo; mkdir repo/test; seq 20 > repo/test/a; git -C repo add .; ${commit} -m x`);
  sh('git -C repo update-ref refs/runyard/base HEAD');
  const base = await readBaseCommits(workspace);
  const options = { workspace, env: { PATH: process.env.PATH, HOME: testFolder() }, signal, base };
  expect(await checkDiff({ max_files: 0 }, options)).toEqual({});
  sh('mkdir repo/src; mv repo/test/a repo/src/a');
  expect((await checkDiff({ paths: ['src/**'] }, options)).error).toContain('only src/** may');
  sh(`git -C repo add .; ${commit} -m y; git -C repo update-ref refs/runyard/base HEAD`);
  expect((await checkDiff({ max_files: 0 }, options)).error).toContain('the base commit of repo is missing');
  sh('rm -rf repo/.git');
  expect((await checkDiff({ max_files: 0 }, options)).error).toContain('the base commit of repo is missing');
});

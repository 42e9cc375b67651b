/** Tests how `runyard` starts and ends service, database and worker. These are real processes, and none may be left. */
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { thisProcess } from '@runyard/system/process-identity';
import { expect, test, vi } from 'vitest';
import { type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { processesOf } from './support/processes-of.ts';
import { quickStartFlags } from './support/programs.ts';
import { describeSupervised, runyard } from './support/supervised.ts';

describeSupervised('up', (here) => {
  /** Processes that one test passes to the next. */
  let up: RunningCommand;

  test('does not pass the database address, provider keys or variables of the shell to the worker', async () => {
    up = here.start('up', {
      RUNYARD_ANTHROPIC_API_KEY: 'sk-canary-anthropic',
      AWS_SECRET_ACCESS_KEY: 'canary-shell',
    });
    await up.sees('Ctrl-C stops everything.');
    const environment = (name: 'service' | 'worker') =>
      readFileSync(`/proc/${here.programs(name)[0]?.pid}/environ`, 'utf8');
    expect(environment('service')).toContain('sk-canary-anthropic');
    expect(environment('service')).not.toContain('canary-shell');
    expect(environment('worker')).not.toContain('canary');
    expect(
      processesOf(here.folder)
        .map(({ command }) => command)
        .join('\n'),
    ).not.toContain('canary');
    expect(up.output()).not.toContain('canary');
  });

  test('restarts a dead service and a dead worker at the same address with the same Node flags, and reports this', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    const before = here.origin();
    const hasFlags = () =>
      here.programs('service').map(({ command }) => quickStartFlags.every((flag) => command.includes(flag)));
    expect(hasFlags()).toEqual([true]);
    for (const name of ['service', 'worker'] as const) {
      const [first] = here.programs(name);
      process.kill(first?.pid ?? 0, 'SIGKILL');
      await up.sees(`the ${name} ended by signal SIGKILL; starting it again in`);
      await up.sees(`the ${name} runs again`);
      expect(here.programs(name)).toHaveLength(1);
      expect(here.programs(name)[0]?.pid).not.toBe(first?.pid);
    }
    expect(hasFlags()).toEqual([true]);
    expect((await fetch(`${before}/readyz`)).status).toBe(200);
    // Choose the runbook. Otherwise the service, which has the key of a provider, would choose a model for the run.
    const { output, code } = await runCommand([runyard, 'run', '--model', 'runbook', '-'], {
      cwd: here.folder,
      env: here.env,
      input: '```sh\necho still here\n```',
    });
    expect(output).toContain('│ still here');
    expect(code).toBe(0);
  });

  // Only SIGKILL is tested here: `command-line-watch.test.ts` ends `up` by SIGTERM, and `newcomer.test.ts` by Ctrl-C.
  test('leaves no process when it is killed with SIGKILL', async () => {
    expect(here.programs('service')).toHaveLength(1);
    expect(here.programs('worker')).toHaveLength(1);
    up.child.kill('SIGKILL');
    await up.exited;
    await here.noProcessLeft();
  });

  test('leaves no process when Ctrl-C stops it in the middle of the first start', { tags: 'long' }, async () => {
    here.withoutHeadStart();
    const first = here.start('up');
    await vi.waitFor(() => expect(here.programs('service')).toHaveLength(1), { timeout: 60_000, interval: 20 });
    first.child.kill('SIGINT');
    await first.exited;
    expect(first.output()).not.toContain('Runyard is running');
    expect(processesOf(here.folder)).toEqual([]);
    expect(here.lastMessageOfService()).toMatch(/^service stopped/);
  });
});

describeSupervised('programs that the command `run` started', (here) => {
  const call = (args: string[], input = '') =>
    runCommand([runyard, ...args], { cwd: here.folder, env: here.env, input });
  // End each output with a full stop. Otherwise the service would delay the last characters, because they may be the beginning of its
  // secrets key; no key contains a full stop.
  const begin = async (commands: string) => {
    const { output } = await call(['run', '--detach', '--json', '-'], `\`\`\`sh\n${commands}\n\`\`\``);
    const { run_id: runId } = JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '');
    const logs = startCommand([runyard, 'logs', runId, '--follow'], { cwd: here.folder, env: here.env });
    await logs.sees('│ begun.');
    return runId as string;
  };

  test('serve two concurrent first runs, hold no pipe of these commands open, and use folders that only their owner can read', {
    tags: 'long',
    timeout: 240_000,
  }, async () => {
    here.withoutHeadStart();
    const runs = ['one', 'two'].map((word) => {
      writeFileSync(path.join(here.folder, `${word}.md`), `\`\`\`sh\necho ${word}\n\`\`\`\n`);
      // This checks that the background processes have not inherited the pipe and descriptor 9: otherwise `cat` and the lock would
      // wait forever.
      const script = `exec 9>lock; { ${runyard} run ${word}.md; echo "exit $?"; } 2>&1 | cat`;
      return runCommand(['sh', '-c', script], { cwd: here.folder, env: here.env });
    });
    for (const [index, { output }] of (await Promise.all(runs)).entries()) {
      expect(output).toContain(`│ ${['one', 'two'][index]}`);
      expect(output).toContain('SUCCEEDED');
      expect(output).toMatch(/exit 0\n$/);
    }
    expect(here.programs('service')).toHaveLength(1);
    expect(here.programs('worker')).toHaveLength(1);
    for (const { pid } of processesOf(here.folder)) {
      const open = await runCommand(['sh', '-c', `ls -l /proc/${pid}/fd`], { cwd: here.folder });
      expect(open.output).not.toContain(path.join(here.folder, 'lock'));
    }
    expect(statSync(path.join(here.folder, 'data')).mode & 0o777).toBe(0o700);
    expect(statSync(path.join(here.folder, 'data/bootstrap-key')).mode & 0o777).toBe(0o600);
  });

  test('serve a `run` command that cancels the run at the first Ctrl-C and exits with 130', async () => {
    writeFileSync(path.join(here.folder, 'sleep.md'), '```sh\necho begun.\nsleep 300\n```\n');
    const running = startCommand([runyard, 'run', 'sleep.md'], { cwd: here.folder, env: here.env });
    await running.sees('│ begun.');
    running.child.kill('SIGINT');
    expect(await running.exited).toBe(130);
    expect(running.output()).toContain('cancelling the run');
    expect(running.output()).toContain('CANCELLED');
  });

  test('are not stopped by `down` while a run is live, except with `--wait` or `--force`; a run that `--force` ends is retryable', {
    timeout: 300_000,
  }, async () => {
    const asked = await call(['run', '--approval', 'ask', '-'], '```sh\necho asked\n```');
    expect(asked.output).toContain('BLOCKED');
    const patient = await begin('echo begun.; sleep 300');
    const refused = await call(['down']);
    // `down` needs no option for a run that waits for a person, because this run does not count as live.
    expect(refused.output).toMatch(/nothing was stopped, because there is 1 live run:\n +[0-9a-f-]{36} +INPROGRESS/);
    expect(refused.code).toBe(1);
    expect(here.programs('service')).toHaveLength(1);

    const waiting = startCommand([runyard, 'down', '--wait'], { cwd: here.folder, env: here.env });
    await waiting.sees('waiting for 1 live run');
    expect(JSON.parse((await call(['runs', 'get', patient])).output).state).toBe('INPROGRESS');
    await call(['cancel', patient]);
    expect(await waiting.exited).toBe(0);
    expect(processesOf(here.folder)).toEqual([]);

    // Write a service.json as after a crash, with a process id that now belongs to another program. The next `run` must start the
    // programs in spite of this file.
    const stale = { pid: process.pid, base_url: 'http://127.0.0.1:1', started_at: '2026-11-21T10:00:00Z' };
    const identity = { ...thisProcess(), start_ticks: 1 };
    for (const content of [stale, { ...stale, ...identity }]) {
      writeFileSync(path.join(here.folder, 'data/service.json'), JSON.stringify(content));
      const told = await runCommand([runyard, 'status'], { cwd: here.folder, env: here.env });
      expect(told).toMatchObject({ code: 1, output: expect.stringContaining('not running') });
    }
    const ended = await begin('echo begun.; sleep 300');
    expect((await call(['runs', '--state', 'BLOCKED'])).output).toContain(
      'asks for permission to use shell: echo asked',
    );
    const forced = await call(['down', '--force']);
    expect(forced).toMatchObject({ code: 0, output: expect.stringContaining(`bin/runyard rerun ${ended}`) });
    expect(processesOf(here.folder)).toEqual([]);

    await call(['run', '-'], '```sh\ntrue\n```');
    const { state, status_message } = JSON.parse((await call(['runs', 'get', ended])).output);
    expect({ state, ...status_message }).toMatchObject({
      state: 'ERROR',
      error_code: 'resource_unavailable',
      retryable: true,
    });
  });

  test('stop and report the reason when their data folder is removed', { tags: 'long' }, async () => {
    expect(here.programs('service')).toHaveLength(1);
    const log = openSync(path.join(here.folder, 'data/logs/supervisor.log'), 'r');
    try {
      // PostgreSQL may still write to the folder while the test removes the folder.
      rmSync(path.join(here.folder, 'data'), { recursive: true, force: true, maxRetries: 20 });
      await here.noProcessLeft();
      expect(readFileSync(log, 'utf8')).toContain('was removed: stopping');
    } finally {
      closeSync(log);
    }
  });
});

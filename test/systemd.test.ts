/**
 * Tests the units of `deploy/systemd`: checks the units with systemd, and runs their programs as an ordinary user with only the
 * privileges that the units allow.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { settingsTable } from '@runyard/contract/settings/settings';
import { afterAll, describe, expect, test } from 'vitest';
import { endCommands, type RunningCommand, startCommand } from './support/command-line.ts';
import { giveDatabase, giveRuntime } from './support/head-start.ts';
import { eventually, sandboxProblem } from './support/system.ts';

const root = path.resolve(import.meta.dirname, '..');
const units = ['runyard-service', 'runyard-worker'] as const;
const unitOf = (name: (typeof units)[number]): string =>
  readFileSync(path.join(root, `deploy/systemd/${name}.service`), 'utf8').replaceAll('/opt/runyard', root);

const folder = mkdtempSync(path.join(tmpdir(), 'runyard-systemd-'));
const started: RunningCommand[] = [];
afterAll(async () => {
  for (const { child } of started.toReversed()) child.kill('SIGINT');
  await Promise.all(started.map(({ exited }) => exited));
  endCommands();
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
});

const analyze = existsSync('/usr/bin/systemd-analyze') ? null : 'there is no systemd-analyze';
test.skipIf(analyze !== null).each(units)(
  `systemd finds no fault in %s${analyze === null ? '' : ` (skipped: ${analyze})`}`,
  (name) => {
    const file = path.join(folder, `${name}.service`);
    writeFileSync(file, unitOf(name));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    // Ignore reports about this option, because the systemd of this machine may be too old to know it.
    const faults = stderr.split('\n').filter((line) => line !== '' && !line.includes('DelegateSubgroup'));
    expect([status, faults]).toEqual([0, []]);
  },
);

test.each(units)('%s names only settings that exist', (name) => {
  const named = [...unitOf(name).matchAll(/RUNYARD_[A-Z_]+/g)].map(([setting]) => setting);
  expect(named.filter((each) => !(each.replace(/_FILE$/, '') in settingsTable))).toEqual([]);
});

test('the worker has another user than the service, and its unit hides the folder of the service', () => {
  const optionOf = (name: (typeof units)[number], option: string) =>
    new RegExp(`^${option}=(.+)$`, 'm').exec(unitOf(name))?.[1];
  for (const option of ['User', 'Group', 'StateDirectory'])
    expect(optionOf('runyard-worker', option)).not.toBe(optionOf('runyard-service', option));
  expect(optionOf('runyard-worker', 'InaccessiblePaths')).toBe(
    `-/var/lib/${optionOf('runyard-service', 'StateDirectory')}`,
  );
});

/** Id of the user `nobody`, as which the test runs the programs instead of the users of the units. */
const plainUser = 65534;
const isRoot = process.getuid?.() === 0;
const problem =
  sandboxProblem ?? (isRoot && existsSync('/usr/bin/setpriv') ? null : 'only root can start programs as another user');
const title = 'the programs of the units, as a plain user with their privileges';

describe.skipIf(problem !== null)(problem === null ? title : `${title} (skipped: ${problem})`, () => {
  /** Starts the program of a unit with the environment that systemd would give it. */
  function startUnit(name: (typeof units)[number], dataDir: string, env: Record<string, string>): RunningCommand {
    const unit = unitOf(name);
    const [, line = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    expect(unit).toContain('\nCapabilityBoundingSet=\n');
    expect(unit).toContain('\nNoNewPrivileges=yes\n');
    const ids = [`--reuid=${plainUser}`, `--regid=${plainUser}`, '--clear-groups'];
    const command = startCommand(
      ['setpriv', ...ids, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', ...line.split(' ')],
      { cwd: root, env: { HOME: dataDir, USER: 'nobody', RUNYARD_DATA_DIR: dataDir, ...env } },
    );
    started.push(command);
    return command;
  }

  test('execute a run in a bubblewrap sandbox', async () => {
    const [serviceFolder, workerFolder] = [path.join(folder, 'service'), path.join(folder, 'worker')];
    const credential = path.join(folder, 'api-key');
    chmodSync(folder, 0o755);
    mkdirSync(serviceFolder);
    mkdirSync(workerFolder);
    await giveDatabase(serviceFolder);
    await giveRuntime(workerFolder);
    for (const each of [serviceFolder, workerFolder]) {
      chmodSync(each, 0o700);
      execFileSync('chown', ['-R', `${plainUser}:${plainUser}`, each]);
    }
    const service = startUnit('runyard-service', serviceFolder, { RUNYARD_PORT: '0' });
    await service.sees('service ready');
    const { base_url: origin } = JSON.parse(readFileSync(path.join(serviceFolder, 'service.json'), 'utf8'));
    const key = readFileSync(path.join(serviceFolder, 'bootstrap-key'), 'utf8').trim();
    writeFileSync(credential, `${key}\n`, { mode: 0o444 });
    const worker = startUnit('runyard-worker', workerFolder, {
      RUNYARD_BASE_URL: origin,
      RUNYARD_API_KEY_FILE: credential,
      RUNYARD_SANDBOX: 'bubblewrap',
    });
    await worker.sees('connected to the service');
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ prompt: '```sh\nid -u; echo done > file\n```', config: { idle_timeout_minutes: 0 } });
    const created = await fetch(`${origin}/api/v1/agent/runs`, { method: 'POST', headers, body });
    const { run_id: runId } = (await created.json()) as { run_id: string };
    const ended = await eventually('end of the run', async () => {
      const answer = await fetch(`${origin}/api/v1/agent/runs/${runId}`, { headers });
      const run = (await answer.json()) as { state: string; status_message?: unknown };
      return ['SUCCEEDED', 'FAILED', 'ERROR'].includes(run.state) ? run : null;
    });
    expect(ended.state, JSON.stringify(ended.status_message)).toBe('SUCCEEDED');
  });
});

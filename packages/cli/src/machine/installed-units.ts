/**
 * Runs commands for an installation that systemd runs (deploy/systemd). A command then gets the settings, credentials and user of the unit
 * from systemd itself, as the program of the unit does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { root } from '../data-folder/installation.ts';
import { Failure } from '../exits/failure.ts';

export type ProgramName = 'service' | 'worker';

/** A unit of systemd that runs a program of this checkout. */
export interface InstalledUnit {
  readonly program: ProgramName;
  readonly name: string;
  readonly user: string;
  readonly group: string;
  readonly moreGroups: readonly string[];
  /** `NAME=value` of each variable of the unit, without those of `files`. */
  readonly environment: readonly string[];
  /** Files with variables. If a file is `optional`, it may be absent. */
  readonly files: readonly (readonly [file: string, optional: boolean])[];
  readonly credentials: readonly (readonly [name: string, file: string])[];
  readonly encryptedCredentials: readonly (readonly [name: string, file: string])[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** If one of these variables is set, the command is for the installation that the variables describe. */
const ownInstallation = ['RUNYARD_DATA_DIR', 'RUNYARD_DATABASE_URL', 'RUNYARD_DATABASE_URL_FILE', 'RUNYARD_BASE_URL'];

/** Returns the units that run programs of this checkout, first the service. Returns none if the command has the settings of an installation already. */
export function findUnits(env: Environment = process.env): InstalledUnit[] {
  if (ownInstallation.some((name) => env[name])) return [];
  // sd_booted(3): this folder exists if and only if systemd is the first process of the machine.
  if (!existsSync('/run/systemd/system')) return [];
  return (['service', 'worker'] as const).flatMap((program) => readUnit(program) ?? []);
}

function readUnit(program: ProgramName): InstalledUnit | undefined {
  const name = `runyard-${program}`;
  const object = `/org/freedesktop/systemd1/unit/runyard_2d${program}_2eservice`;
  if (readProperties(object, 'Unit', ['LoadState'])?.[0] !== 'loaded') return undefined;
  const values = readProperties(object, 'Service', [
    'WorkingDirectory',
    'User',
    'Group',
    'SupplementaryGroups',
    'Environment',
    'EnvironmentFiles',
    'LoadCredential',
    'LoadCredentialEncrypted',
  ]);
  if (values === undefined) return undefined;
  const [folder, user, group, moreGroups, environment, files, credentials, encryptedCredentials] = values as [
    string,
    string,
    string,
    string[],
    string[],
    [string, boolean][],
    [string, string][],
    [string, string][],
  ];
  if (!isThisCheckout(folder)) return undefined;
  return {
    program,
    name,
    user: user || 'root',
    group,
    moreGroups,
    environment,
    files,
    credentials,
    encryptedCredentials,
  };
}

/** Returns the values of properties of a unit, or undefined if systemd does not answer. */
function readProperties(object: string, kind: 'Unit' | 'Service', names: readonly string[]): unknown[] | undefined {
  const { status, stdout } = spawnSync(
    'busctl',
    ['--json=short', 'get-property', 'org.freedesktop.systemd1', object, `org.freedesktop.systemd1.${kind}`, ...names],
    { encoding: 'utf8', timeout: 5000, maxBuffer: 1024 * 1024 },
  );
  if (status !== 0) return undefined;
  const lines = stdout.trim().split('\n');
  return lines.length === names.length ? lines.map((line) => (JSON.parse(line) as { data: unknown }).data) : undefined;
}

function isThisCheckout(folder: string): boolean {
  try {
    return realpathSync(folder.replace(/^[-!]+/, '')) === realpathSync(root);
  } catch {
    return false;
  }
}

/**
 * If systemd runs a program of this checkout, repeats this command in the unit of the service, or else of the worker, and ends this
 * process with the exit code of the command.
 */
export async function continueInUnit(): Promise<void> {
  const [unit] = findUnits();
  if (unit === undefined) return;
  const { exitCode } = await runInUnit(unit, process.argv.slice(2), 'inherit');
  process.exit(exitCode);
}

/** Variables of the terminal that a command in a unit gets too. */
const passedOn = ['TERM', 'COLORTERM', 'NO_COLOR', 'FORCE_COLOR', 'COLUMNS', 'LANG', 'LC_ALL', 'TZ'];

/** The answer of a command that ran in a unit. The texts are empty if the command wrote to the terminal. */
interface Ending {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `runyard` with `args` as systemd would run the program of the unit.
 * @throws Failure if this user may not do that
 */
export async function runInUnit(
  unit: InstalledUnit,
  args: readonly string[],
  stdio: 'inherit' | 'pipe',
  env: Environment = process.env,
): Promise<Ending> {
  if (process.getuid?.() !== 0)
    throw new Failure(
      `Runyard runs here as the unit ${unit.name} of systemd, and only root can use the settings of the unit: repeat the command with sudo`,
      2,
    );
  const name = `runyard-command-${process.pid}-${unit.program}`;
  const credentials = (unitName: string): string => `/run/credentials/${unitName}.service`;
  const given = passedOn.flatMap((each) => (env[each] === undefined ? [] : [`${each}=${env[each]}`]));
  const variables = [
    ...unit.environment.map((each) => each.replaceAll(credentials(unit.name), credentials(name))),
    ...given,
  ].map(split);
  const property = (key: string, value: string): string => `--property=${key}=${value}`;
  const child = spawn(
    'systemd-run',
    [
      ...['--quiet', '--pipe', '--wait', '--collect', '--service-type=exec', `--unit=${name}`],
      // The user of the unit may have no right to this folder. Then the command begins in the topmost folder.
      property('WorkingDirectory', `-${process.cwd()}`),
      property('User', unit.user),
      ...(unit.group === '' ? [] : [property('Group', unit.group)]),
      ...unit.moreGroups.map((group) => property('SupplementaryGroups', group)),
      ...unit.files.map(([file, optional]) => property('EnvironmentFile', `${optional ? '-' : ''}${file}`)),
      ...unit.credentials.map(([id, file]) => property('LoadCredential', `${id}:${file}`)),
      ...unit.encryptedCredentials.map(([id, file]) => property('LoadCredentialEncrypted', `${id}:${file}`)),
      // The worker's sandboxes need cgroups.
      ...(unit.program === 'worker' ? [property('Delegate', 'yes')] : []),
      // systemd-run takes the values from its own environment, because every user of the machine can read arguments.
      ...variables.map(([variable]) => `--setenv=${variable}`),
      ...[process.execPath, ...process.execArgv, path.join(root, 'packages/cli/src/main.ts'), '--in-unit', ...args],
    ],
    {
      stdio: stdio === 'inherit' ? 'inherit' : ['ignore', 'pipe', 'pipe'],
      env: { PATH: env.PATH, ...Object.fromEntries(variables) },
    },
  );
  // Ctrl-C would end systemd-run, and leave the unit running.
  const stop = (): void => void spawn('systemctl', ['stop', `${name}.service`], { stdio: 'ignore' });
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout === null ? '' : text(child.stdout),
      child.stderr === null ? '' : text(child.stderr),
      new Promise<number>((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1))),
    ]);
    // systemd.exec(5): codes from 200 on mean that systemd could not start the program.
    if (exitCode >= 200)
      throw new Failure(`systemd could not start the command for ${unit.name}: see journalctl -u ${name}`, 1);
    return { exitCode, stdout, stderr };
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

function split(variable: string): [name: string, value: string] {
  const end = variable.indexOf('=');
  return [variable.slice(0, end), variable.slice(end + 1)];
}

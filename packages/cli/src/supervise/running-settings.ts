/** Compares the settings of a command with the settings of the running programs of the data folder. */
import { readFileSync } from 'node:fs';
import type { Setting } from '@runyard/contract/settings/setting';
import { type SettingName, settingsTable } from '@runyard/contract/settings/settings';

type Environment = Readonly<Record<string, string | undefined>>;

/** A setting of a command that the running programs do not have, or that has another value in their environment. */
export interface Difference {
  readonly name: SettingName;
  /** The values here and in the running programs, as a user would write them. For a secret, only whether it is set. */
  readonly here: string;
  readonly running: string;
}

/** Settings that are not compared, because they are meant for commands or are always the same for all programs of a data folder. */
const ofCommand: ReadonlySet<string> = new Set(['RUNYARD_API_KEY', 'RUNYARD_BASE_URL', 'RUNYARD_DATA_DIR']);

/** Settings that determine the address of the service. */
export const addressSettings = ['RUNYARD_HOST', 'RUNYARD_PORT'] as const satisfies readonly SettingName[];

/**
 * Returns the environment with which a process was started, or `undefined` if this user cannot read it. Only the user of the process and
 * root can read this environment (proc_pid_environ(5)). So commands can compare secrets without a file that contains the secrets or hashes
 * of the secrets.
 */
export function readEnvironmentOf(pid: number): Environment | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return undefined;
  }
  const pairs = text.split('\0').filter((pair) => pair.includes('='));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

/**
 * Returns the settings that have another value in `env` than in `running`. Compares only the settings in `names` that at least one of
 * `programs` uses. A setting that is not in `env` is not a difference.
 */
export function differencesTo(
  running: Environment,
  env: Environment,
  programs: readonly string[],
  names: readonly SettingName[] = Object.keys(settingsTable) as SettingName[],
): Difference[] {
  return names.flatMap((name): Difference[] => {
    const setting: Setting<unknown> = settingsTable[name];
    const here = env[name];
    if (!here || ofCommand.has(name) || !setting.usedBy.some((program) => programs.includes(program))) return [];
    // Port 0 means any free port, so it does not differ from any port.
    if (name === 'RUNYARD_PORT' && Number(here) === 0) return [];
    const there = running[name] || setting.default;
    if (there !== undefined && isSame(setting, here, there)) return [];
    return [{ name, ...(setting.secret ? describeSecret(there) : { here, running: there ?? 'not set' }) }];
  });
}

/** Returns true if both texts parse to the same value, such as `http://host/` and `http://host`. */
function isSame(setting: Setting<unknown>, one: string, other: string): boolean {
  const [first, second] = [setting.read(one), setting.read(other)];
  if ('problem' in first || 'problem' in second) return one === other;
  return JSON.stringify(first.value) === JSON.stringify(second.value);
}

const describeSecret = (there: string | undefined) => ({
  here: 'set',
  running: there === undefined ? 'not set' : 'another value',
});

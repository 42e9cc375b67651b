/** Compares the settings of a command with the settings of the running programs of the data folder. */
import { readFileSync } from 'node:fs';
import type { Setting } from '@runyard/contract/settings/setting';
import { type SettingName, settingsTable } from '@runyard/contract/settings/settings';

type Environment = Readonly<Record<string, string | undefined>>;

/** A setting of a command that is missing in the environment of the running programs, or has another value there. */
export interface Difference {
  readonly name: SettingName;
  /** Values as a user would write them. For a secret, only whether it is set. */
  readonly here: string;
  readonly running: string;
}

/** Settings that are not compared, because they belong to a command or are the same for all programs of a data folder. */
const ofCommand: ReadonlySet<string> = new Set(['RUNYARD_API_KEY', 'RUNYARD_BASE_URL', 'RUNYARD_DATA_DIR']);

/** Settings that decide where the service is. */
export const addressSettings = ['RUNYARD_HOST', 'RUNYARD_PORT'] as const satisfies readonly SettingName[];

/**
 * Returns the environment that a process was started with; `undefined` if this user cannot read it. Only the process's own user and root
 * can read it, so the comparison needs no file with a secret or with the hash of a secret (proc_pid_environ(5)).
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
 * Returns the settings that `env` sets to another value than `running` has. Compares only `names`, if they are given, and only settings
 * that at least one of `programs` uses. A setting that `env` does not have is not a difference.
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
    // Port 0 means any free port, so it equals each port.
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

/** The table of all settings of all programs. Parsing, error messages and `docs/settings.md` use it. */

import { readFileSync } from 'node:fs';
import { makeSpelling } from '../wire/spelling.ts';
import { blobSettings } from './blobs.ts';
import { containerSettings } from './containers.ts';
import { contentPolicySettings } from './content-policy.ts';
import { kubernetesSettings } from './kubernetes.ts';
import { metricsSettings } from './metrics.ts';
import { modelSettings } from './models.ts';
import { serviceSettings } from './service.ts';
import type { Reading, ReadText, Setting } from './setting.ts';
import { signOnSettings } from './sign-on.ts';
import { workerSettings } from './worker.ts';

export const settingsTable = {
  ...serviceSettings,
  ...blobSettings,
  ...metricsSettings,
  ...modelSettings,
  ...contentPolicySettings,
  ...signOnSettings,
  ...workerSettings,
  ...containerSettings,
  ...kubernetesSettings,
} as const;

export type SettingName = keyof typeof settingsTable;

type Value<N extends SettingName> = (typeof settingsTable)[N]['read'] extends ReadText<infer T> ? T : never;

/** Parsed settings. Settings with a default are always present. */
export type Settings = {
  readonly [N in SettingName as (typeof settingsTable)[N] extends { default: string } ? N : never]: Value<N>;
} & {
  readonly [N in SettingName as (typeof settingsTable)[N] extends { default: string } ? never : N]?: Value<N>;
};

/**
 * The settings, or the problems of the environment variables. A problem is one line with the name of the setting and the reason. It
 * never contains the value of a secret.
 */
export type SettingsResult = { ok: true; settings: Settings } | { ok: false; problems: string[] };

const isSecret = (name: string): boolean => name in settingsTable && 'secret' in settingsTable[name as SettingName];

/** Returns the name of the variable that names a file. The file contains the value of the secret setting `name`. */
export const fileVariable = (name: string): string => `${name}_FILE`;

/**
 * Returns the text of a setting from its variable or from the file in `NAME_FILE`, without white space and a byte order mark at its ends.
 */
function textOf(name: SettingName, env: Readonly<Record<string, string | undefined>>): Reading<string | undefined> {
  const given = env[name]?.trim();
  const file = isSecret(name) ? env[fileVariable(name)]?.trim() : undefined;
  if (!file) return { value: given || undefined };
  if (given) return { problem: `is set, and ${fileVariable(name)} too: unset one of them` };
  try {
    const value = readFileSync(file, 'utf8').trim();
    return value === '' ? { problem: `the file of ${fileVariable(name)} is empty (${file})` } : { value };
  } catch (error) {
    return { problem: `the file of ${fileVariable(name)} cannot be read: ${(error as Error).message}` };
  }
}

/**
 * Reads all settings from `env`. Reads secrets also from files that `NAME_FILE` variables name. An empty value counts as absent. An unknown
 * `RUNYARD_…` name is a problem, because it is probably a typing error.
 */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): SettingsResult {
  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const name of Object.keys(env)) {
    const isKnown = name in settingsTable || (name.endsWith('_FILE') && isSecret(name.slice(0, -'_FILE'.length)));
    if (name.startsWith('RUNYARD_') && !isKnown) {
      const suggestion = makeSpelling(Object.keys(settingsTable)).suggest(name);
      const hint = suggestion === undefined ? 'see docs/settings.md' : `did you mean ${suggestion}?`;
      problems.push(`${name}: is not a setting of Runyard; ${hint}`);
    }
  }
  for (const [name, setting] of Object.entries(settingsTable) as [SettingName, Setting<unknown>][]) {
    const given = textOf(name, env);
    if ('problem' in given) {
      problems.push(`${name}: ${given.problem}`);
      continue;
    }
    const text = given.value ?? setting.default;
    if (text === undefined) continue;
    const reading = setting.read(text);
    if ('value' in reading) settings[name] = reading.value;
    else {
      // A URL may have a password.
      const isShown = !setting.secret && !/:\/\/[^/]*@/.test(text);
      const valueNote = isShown ? ` (it is ${JSON.stringify(text)})` : '';
      problems.push(`${name}: ${reading.problem}${valueNote}`);
    }
  }
  const [files, base] = [settings.RUNYARD_FILES_URL, settings.RUNYARD_BASE_URL].map((url) =>
    typeof url === 'string' ? new URL(url).hostname : undefined,
  );
  if (files !== undefined && files === base)
    problems.push(
      'RUNYARD_FILES_URL: must have another host name than RUNYARD_BASE_URL: cookies are sent to all ports of a host',
    );
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings: settings as Settings };
}

import { parseSettings, type Settings } from '@runyard/contract/settings/settings';
import { Failure } from '../exits/failure.ts';

/** Reads the settings. @throws Failure that names each wrong setting with its reason */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const result = parseSettings(env);
  if (result.ok) return result.settings;
  const count = result.problems.length;
  throw new Failure(
    `${count === 1 ? 'a setting is' : `${count} settings are`} wrong:\n${result.problems.map((problem) => `  ${problem}`).join('\n')}`,
    2,
  );
}

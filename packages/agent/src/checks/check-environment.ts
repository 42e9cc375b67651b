import { delimiter, isAbsolute, relative, sep } from 'node:path';

/** Settings of git that stop hooks and programs of the repository from running in a check. */
const gitSettings = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
] as const;

const isBelow = (folder: string, path: string): boolean => {
  const inside = relative(folder, path);
  return inside === '' || !(inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside));
};

/**
 * Returns the environment of a check's command. `path`: the PATH from before the harness worked. Relative folders of this PATH are left out,
 * and folders below `folders`, because the harness can write there.
 */
export function checkEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  { path = '', folders }: { readonly path?: string | undefined; readonly folders: readonly (string | undefined)[] },
): Record<string, string | undefined> {
  const writable = folders.filter((folder) => folder !== undefined);
  const kept = path
    .split(delimiter)
    .filter((entry) => isAbsolute(entry) && !writable.some((folder) => isBelow(folder, entry)));
  const count = Number(env.GIT_CONFIG_COUNT ?? 0) || 0;
  const git = Object.fromEntries(
    gitSettings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${count + index}`, key],
      [`GIT_CONFIG_VALUE_${count + index}`, value],
    ]),
  );
  const { BASH_ENV: _bash, ENV: _sh, ...others } = env;
  return { ...others, ...git, GIT_CONFIG_COUNT: String(count + gitSettings.length), PATH: kept.join(delimiter) };
}

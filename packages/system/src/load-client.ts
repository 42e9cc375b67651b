/**
 * Loads a module that uses the client library of an outside system, such as a bucket. The library may be missing, because `bin/runyard`
 * installs it only if `setting` needs it. Then the error says how to install it.
 */
export const loadClient = async <Module>(setting: string, load: () => Promise<Module>): Promise<Module> =>
  await load().catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(
      `the packages for ${setting} are not installed: start this program with bin/runyard and ${setting}, or run npm ci`,
      { cause: error },
    );
  });

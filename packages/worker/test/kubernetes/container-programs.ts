/** Returns the mounts with which the fake node of the tests (`kubelet.ts`) gives programs to containers. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** Returns the mounts for a container that uses the programs of this machine. */
export const programsOfMachine = (): string[] =>
  ['usr', 'bin', 'lib', 'lib64', 'sbin'].flatMap((each) =>
    existsSync(`/${each}`) ? ['--ro-bind', `/${each}`, `/${each}`] : [],
  );

/**
 * Folder in the container with `setpriv`, the program that changes the user. `loaded` is the beginning of a command line with `setpriv`.
 */
const helper = '/.stand-in';
export const loaded = [`${helper}/ld.so`, '--library-path', helper, `${helper}/setpriv`];

/** Returns the mounts for a container whose root folder contains the files of `folder`. */
export function programsOfImage(folder: string): string[] {
  const setpriv = execFileSync('/bin/sh', ['-c', 'command -v setpriv'], { encoding: 'utf8' }).trim();
  const libraries = execFileSync('ldd', [setpriv], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  const nameOf = (file: string): string => (/\/ld-linux/.test(file) ? 'ld.so' : path.basename(file));
  return [
    ...readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isSymbolicLink()
        ? ['--symlink', readlinkSync(path.join(folder, entry.name)), `/${entry.name}`]
        : ['--ro-bind', path.join(folder, entry.name), `/${entry.name}`],
    ),
    ...[setpriv, ...libraries].flatMap((file) => ['--ro-bind', file, `${helper}/${nameOf(file)}`]),
  ];
}

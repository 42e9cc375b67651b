/** Mounts by which the test's replacement of a node provides programs to containers. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** Returns the mounts of a container with the programs of this machine. */
export const programsOfMachine = (): string[] =>
  ['usr', 'bin', 'lib', 'lib64', 'sbin'].flatMap((each) =>
    existsSync(`/${each}`) ? ['--ro-bind', `/${each}`, `/${each}`] : [],
  );

/** Folder in the container with the program that changes the user. `loaded` is the beginning of that program's command line. */
const helper = '/.stand-in';
export const loaded = [`${helper}/ld.so`, '--library-path', helper, `${helper}/setpriv`];

/** Returns the mounts of a container whose root has the files of `folder`. */
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

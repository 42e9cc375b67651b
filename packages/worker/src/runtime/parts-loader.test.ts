import { execFileSync } from 'node:child_process';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { bundleProgram, keepCodeVariable, writeBundle } from './bundle.ts';
import { openParts } from './parts-loader.ts';

const folder = newFolder();
const late = `import path from 'node:path';\nexport const name = (file: string) => path.basename(file) + ' €';\n`;
await writeFile(path.join(folder, 'late.ts'), late);
// The function `long` is so long that the file with the compiled code is clearly larger if it contains this function.
const statements = Array.from({ length: 200 }, (_, n) => `text += n * ${n} + 'x';`).join('');
const main = `const long = (n: number) => { let text = ''; ${statements} return text.length; };
if (process.argv[2] !== undefined) console.log(long(1) > 200);
void import('./late.ts').then(({ name }) => console.log(name('/a/b'), typeof process.env.${keepCodeVariable}));
void import('no-such-package').catch(({ code }) => console.log(code));
`;
await writeFile(path.join(folder, 'main.ts'), main);
await writeBundle(await bundleProgram(path.join(folder, 'main.ts')), path.join(folder, 'program'));

const cache = (name = '') => path.join(folder, 'program/cache', name);
const run = (env: Record<string, string> = {}, ...args: string[]) =>
  execFileSync(process.execPath, [path.join(folder, 'program/main.cjs'), ...args], { encoding: 'utf8', env })
    .split('\n')
    .sort()
    .filter(Boolean);
const keep = { [keepCodeVariable]: '1' };
const output = ['MODULE_NOT_FOUND', 'b € undefined'];

test('a bundled program loads its parts when it needs them, and stores no compiled code if this was not requested', async () => {
  expect(run()).toEqual(output);
  await expect(stat(cache())).rejects.toThrow('ENOENT');
});

test('the stored code contains the functions that were called', async () => {
  run(keep);
  const { size } = await stat(cache('main.cjs'));
  await rm(cache(), { recursive: true });
  expect(run(keep, 'long')).toEqual([...output, 'true']);
  expect((await stat(cache('main.cjs'))).size).toBeGreaterThan(size + 2000);
});

test('a bundled program uses stored code, and replaces stored code that V8 rejects', async () => {
  expect(run(keep)).toEqual(output);
  const names = await readdir(cache());
  const { ino } = await stat(cache('main.cjs'));
  expect(run(keep)).toEqual(output);
  expect((await stat(cache('main.cjs'))).ino).toBe(ino);
  expect(await readdir(cache())).toEqual(names);
  await writeFile(cache('main.cjs'), 'other');
  expect(run(keep)).toEqual(output);
  expect((await stat(cache('main.cjs'))).size).toBeGreaterThan(100);
});

test('a part runs only once, even if it is loaded twice', async () => {
  const names = await readdir(path.join(folder, 'program/parts'));
  const late = names.find((name) => name.startsWith('late-'));
  const { load } = openParts(path.join(folder, 'program'));
  expect(Object.keys(load(`./${late}`))).toEqual(['name']);
  expect(load(`./${late}`)).toBe(load(`./${late}`));
});

test('a bundled program works even if its compiled code cannot be stored', async () => {
  await rm(cache(), { recursive: true });
  await writeFile(cache(), 'no folder');
  expect(run(keep)).toEqual(output);
});

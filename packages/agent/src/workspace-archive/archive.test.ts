import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { type ArchivedFolder, archivedFolders } from './archived-folders.ts';
import { fingerprint } from './fingerprint.ts';
import { framed } from './frames.ts';
import { ArchiveTooLarge, packFolders } from './pack.ts';
import { unpackFolders } from './unpack.ts';
import { type SaverOptions, workspaceSaver } from './workspace-saver.ts';

const collect = async (stream: AsyncIterable<Buffer>) => {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};
const never = new AbortController().signal;
const env = { PATH: process.env.PATH };
const newFolders = () => {
  const top = testFolder();
  const [workspace, home] = [join(top, 'workspace'), join(top, 'home')];
  mkdirSync(workspace);
  mkdirSync(home);
  return { top, workspace, home, folders: archivedFolders(workspace, home) };
};
const bytesOf = async (stream: AsyncIterable<Buffer>) => Buffer.concat(await collect(stream));
const pack = async (folders: readonly ArchivedFolder[], maxBytes = 1e9) =>
  await bytesOf(packFolders(folders, { env, maxBytes, signal: never }));
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const unpack = (bytes: Buffer, folders: readonly ArchivedFolder[]) =>
  unpackFolders(Readable.from([bytes]), folders, { sha256: sha256(bytes), env, signal: never });

describe('an archive', () => {
  test('omits lock files of git, because the processes that made these files have ended when the archive is restored', async () => {
    const from = newFolders();
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd, encoding: 'utf8' });
    const repository = join(from.workspace, 'deep/repo');
    mkdirSync(repository, { recursive: true });
    git(repository, 'init', '--quiet', '-b', 'main');
    writeFileSync(join(repository, 'index.lock'), 'a file of the user');
    git(repository, 'add', '.');
    git(repository, 'commit', '--quiet', '-m', 'one');
    for (const lock of ['index', 'HEAD', 'config', 'packed-refs', 'refs/heads/main'])
      writeFileSync(join(repository, `.git/${lock}.lock`), '');
    const to = newFolders();
    await unpack(await pack(from.folders), to.folders);
    const restored = join(to.workspace, 'deep/repo');
    git(restored, 'commit', '--quiet', '--allow-empty', '-m', 'two');
    git(restored, 'config', 'a.b', 'c');
    expect(readdirSync(restored)).toContain('index.lock');
  });

  test('restores the files of workspace and home, with modes, times, links, and hidden and unusual names', async () => {
    const from = newFolders();
    mkdirSync(join(from.workspace, 'deep/er'), { recursive: true });
    const long = 'n'.repeat(200);
    for (const [name, text] of [
      ['a', 'A'],
      ['.hidden', 'h'],
      ['deep/er/with space\nand newline', 'x'],
      [`deep/${long}`, 'long'],
      ['-rf', 'dash'],
      ['run.sh', '#!/bin/sh\n'],
    ] as const)
      writeFileSync(join(from.workspace, name), text);
    chmodSync(join(from.workspace, 'run.sh'), 0o750);
    chmodSync(join(from.workspace, '.hidden'), 0o400);
    utimesSync(join(from.workspace, 'a'), 1_700_000_000.5, 1_700_000_000.5);
    symlinkSync('/etc/passwd', join(from.workspace, 'out'));
    symlinkSync('deep', join(from.workspace, 'in'));
    linkSync(join(from.workspace, 'a'), join(from.workspace, 'same'));
    mkdirSync(join(from.home, '.claude'));
    writeFileSync(join(from.home, '.claude/session'), 's');
    mkdirSync(join(from.home, '.cache/big'), { recursive: true });
    writeFileSync(join(from.home, '.cache/big/x'), 'cached');

    const to = newFolders();
    await unpack(await pack(from.folders), to.folders);
    expect(readdirSync(to.workspace).sort()).toEqual(readdirSync(from.workspace).sort());
    expect(readFileSync(join(to.workspace, 'deep/er/with space\nand newline'), 'utf8')).toBe('x');
    expect(readFileSync(join(to.workspace, `deep/${long}`), 'utf8')).toBe('long');
    expect(statSync(join(to.workspace, 'run.sh')).mode & 0o777).toBe(0o750);
    expect(statSync(join(to.workspace, '.hidden')).mode & 0o777).toBe(0o400);
    expect(statSync(join(to.workspace, 'a')).mtimeMs).toBe(1_700_000_000_500);
    expect(readlinkSync(join(to.workspace, 'out'))).toBe('/etc/passwd');
    expect(lstatSync(join(to.workspace, 'in')).isSymbolicLink()).toBe(true);
    expect(statSync(join(to.workspace, 'same')).ino).toBe(statSync(join(to.workspace, 'a')).ino);
    expect(readFileSync(join(to.home, '.claude/session'), 'utf8')).toBe('s');
    expect(existsSync(join(to.home, '.cache'))).toBe(false);
  });

  test('leaves out sockets and does not wait for named pipes', async () => {
    const from = newFolders();
    const server = createServer().listen(join(from.workspace, 's.sock'));
    await new Promise((resolve) => server.once('listening', resolve));
    execFileSync('sh', ['-c', 'mkfifo pipe'], { cwd: from.workspace });
    writeFileSync(join(from.workspace, 'file'), 'f');
    const to = newFolders();
    await unpack(await pack(from.folders), to.folders);
    server.close();
    expect(readdirSync(to.workspace).sort()).toEqual(['file', 'pipe']);
  });

  test('preserves the holes of a sparse file', async () => {
    const from = newFolders();
    const image = join(from.workspace, 'disk.img');
    writeFileSync(image, 'begin');
    truncateSync(image, 100_000_000);
    appendFileSync(image, 'end');
    const bytes = await pack(from.folders);
    const to = newFolders();
    await unpack(bytes, to.folders);
    const restored = join(to.workspace, 'disk.img');
    expect(readFileSync(restored).equals(readFileSync(image))).toBe(true);
    expect(statSync(restored).blocks * 512).toBeLessThan(1_000_000);
    expect(zstdDecompressSync(bytes).length).toBeLessThan(1_000_000);
  });

  test('is not created if the archive would be larger than the limit', async () => {
    const { workspace, folders } = newFolders();
    execFileSync('sh', ['-c', 'head -c 300000 /dev/urandom > big'], { cwd: workspace });
    await expect(pack(folders, 200_000)).rejects.toBeInstanceOf(ArchiveTooLarge);
    expect((await pack(folders, 400_000)).length).toBeGreaterThan(300_000);
  });

  test('is rejected if a part of it is missing or changed', async () => {
    const { workspace, folders } = newFolders();
    writeFileSync(join(workspace, 'a'), 'A'.repeat(100_000));
    const whole = await pack(folders);
    await expect(unpack(whole.subarray(0, whole.length - 20), newFolders().folders)).rejects.toThrow();
    const changed = Buffer.from(whole);
    // Change many bytes, because some bits of compressed data have no effect.
    changed.fill(0, 100, 120);
    await expect(unpack(changed, newFolders().folders)).rejects.toThrow();
    const other = { sha256: '0'.repeat(64), env, signal: never };
    await expect(unpackFolders(Readable.from([whole]), newFolders().folders, other)).rejects.toThrow(
      'differs from the archive',
    );
    await expect(unpack(Buffer.from('no archive'), newFolders().folders)).rejects.toThrow();
  });

  test('is not completed if the signal aborts', async () => {
    const { workspace, folders } = newFolders();
    execFileSync('sh', ['-c', 'head -c 200000000 /dev/urandom > big'], { cwd: workspace });
    const abort = new AbortController();
    const archive = packFolders(folders, { env, maxBytes: 1e9, signal: abort.signal });
    archive.once('data', () => abort.abort(new Error('given up')));
    await expect(bytesOf(archive)).rejects.toThrow();
    expect(archive.destroyed).toBe(true);
  });

  test.each([
    ['a name that climbs', ['--transform=s,^,../,', 'evil']],
    ['an absolute name', ['--absolute-names', '--transform=s,^,TOP/,', 'evil']],
    ['a file behind a link to outside', ['link', '--transform=s,^evil,link/evil,', 'evil']],
  ])('with %s writes nothing outside of the folder', async (_name, args) => {
    const from = newFolders();
    const to = newFolders();
    writeFileSync(join(from.workspace, 'evil'), 'evil');
    symlinkSync(to.top, join(from.workspace, 'link'));
    const tar = execFileSync('tar', ['-cf', '-', ...args.map((arg) => arg.replace('TOP', to.top))], {
      cwd: from.workspace,
    });
    const empty = execFileSync('tar', ['-cf', '-', '-T', '/dev/null']);
    const bytes = zstdCompressSync(await bytesOf(framed([Readable.from([tar]), Readable.from([empty])])));
    await unpack(bytes, to.folders).catch(() => {});
    expect(readdirSync(to.top).sort()).toEqual(['home', 'workspace']);
  });
});

describe('the fingerprint of the folders', () => {
  const look = (folders: readonly ArchivedFolder[]) => fingerprint(folders, never);

  test("changes with every change of a file, even if the file's time is set back", async () => {
    const { workspace, home, folders } = newFolders();
    expect(await look(folders)).toBe('empty');
    writeFileSync(join(workspace, 'a'), 'one');
    utimesSync(join(workspace, 'a'), 1, 1);
    const first = await look(folders);
    expect(await look(folders)).toBe(first);
    writeFileSync(join(workspace, 'a'), 'two');
    utimesSync(join(workspace, 'a'), 1, 1);
    const second = await look(folders);
    expect(second).not.toBe(first);
    mkdirSync(join(home, '.cache'));
    expect(await look(folders)).toBe(second);
    writeFileSync(join(home, '.settings'), '');
    expect(await look(folders)).not.toBe(second);
  });

  test('can also be computed for very many files', async () => {
    const { workspace, folders } = newFolders();
    execFileSync('sh', ['-c', 'seq 1 5001 | xargs touch'], { cwd: workspace });
    expect(await look(folders)).toMatch(/^[0-9a-f]{64}$/);
  });
});

/** A saver of a new workspace with one file. */
function newSaver(options: Partial<SaverOptions> = {}) {
  const { workspace, home } = newFolders();
  writeFileSync(join(workspace, 'a'), 'A');
  const client = {
    upload: async (_path: string, open: () => Readable) => void (await bytesOf(open())),
    uploadSnapshot: async () => ({ files: [] }),
  };
  return workspaceSaver({
    handedOff: () => [],
    reportChanges: async () => {},
    session: () => undefined,
    onLeftOut: () => {},
    onNotSaved: () => {},
    client,
    workspace,
    folders: archivedFolders(workspace, home),
    env,
    maxBytes: 1e6,
    restored: false,
    signal: never,
    ...options,
  });
}

test('saving an archive in a sandbox without tar fails with the reason ENOENT', async () => {
  const reasons: string[] = [];
  const saver = newSaver({ env: { PATH: '/nonexistent' }, onNotSaved: (reason) => reasons.push(reason) });
  await saver.save(1);
  expect(reasons).toEqual([expect.stringContaining('ENOENT')]);
});

describe('the changed files are reported', () => {
  test('after a turn that changed nothing, if the turn itself stopped the report of the turn before', async () => {
    const reports: string[] = [];
    const begun = Promise.withResolvers<void>();
    const saver = newSaver({
      reportChanges: async (signal) => {
        if (reports.push('begun') > 1) return;
        begun.resolve();
        await once(signal, 'abort');
        signal.throwIfAborted();
      },
    });
    const first = saver.save(1);
    await begun.promise;
    await saver.save(2);
    await first;
    expect(reports).toHaveLength(2);
    await saver.save(3);
    expect(reports).toHaveLength(2);
  });

  test('after the next turn, if a report failed', async () => {
    let reports = 0;
    const saver = newSaver({
      reportChanges: async () => {
        reports++;
        if (reports === 1) throw new Error('no answer');
      },
    });
    for (const turn of [1, 2, 3]) await saver.save(turn);
    expect(reports).toBe(2);
  });
});

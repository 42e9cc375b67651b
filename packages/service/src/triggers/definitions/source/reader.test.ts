/** Reads definitions from hostile repositories on a real git host. */
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readDefinition } from '@runyard/definitions/read-definition';
import { storedFiles } from '@runyard/definitions/stored-files';
import { describe, expect, test } from 'vitest';
import { type ReplacedContent, startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { baseFiles, factoryFile, filesOf } from '../../../../test/definitions.ts';
import { codeHostUrl } from '../../../team/code-hosts/url.ts';
import { openSourceReader, toSyncFaults } from './reader.ts';
import { parseRepository } from './set.ts';

const host = closeAtEnd(await startFakeGitHost());
const urlOf = (repository: { owner: string; repo: string }) => codeHostUrl(host.template, repository);
const parent = mkdtempSync(path.join(tmpdir(), 'runyard-reader-'));
const codeHosts = { urlOf, credentialFor: async () => ({ kind: 'none' }) as const };
const files = filesOf(baseFiles);

interface Options {
  readonly repo?: string;
  readonly branch?: string;
  readonly folder?: string;
  readonly maxPackBytes?: number;
  readonly readMs?: number;
}

/** Reads the files of a repository, and then the definition in them. */
async function read(options: Options = {}) {
  const { repo = 'hostile', branch = null, folder: within = '', ...limits } = options;
  const place = {
    teamId: 't',
    creator: { kind: 'user', uid: 'u' } as const,
    repository: { owner: 'acme', repo },
    branch,
    folder: within,
  };
  const outcome = await openSourceReader({ codeHosts, folder: parent, ...limits }).read(
    place,
    new AbortController().signal,
  );
  if (outcome.kind !== 'files') return outcome;
  const checked = readDefinition(outcome.files);
  return checked.ok ? outcome : { ...outcome, kind: 'faulty' as const, errors: toSyncFaults(checked.faults) };
}

/** Nested YAML aliases that expand to a million values. */
const bomb = [...'bcdefgh']
  .map((name, n) => `${name}: &${name} [${`*${'abcdefg'[n]}, `.repeat(9)}]`)
  .reduce((text, line) => `${text}\n${line}`, 'a: &a [x, x, x, x, x, x, x, x, x]');

describe('a repository', () => {
  test.each<[string, ReplacedContent, RegExp]>([
    [
      'with a link',
      { files, links: { 'agents/x/agent.md': '/etc/passwd' } },
      /^agents\/x\/agent.md: is a symbolic link/,
    ],
    [
      'whose folder is a link',
      { files: { 'factory.yaml': factoryFile }, links: { agents: '/etc' } },
      /needs one agent with agentType: FOREMAN/,
    ],
    ['with a submodule', { files, submodules: { 'skills/s': '1'.repeat(40) } }, /^skills\/s: is a submodule/],
    [
      'with a file in Git LFS',
      { files: { ...files, 'webhooks/a.yaml': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n' } },
      /^webhooks\/a.yaml: is stored with Git LFS/,
    ],
    ['that expands to a million values', { files: { ...files, 'factory.yaml': bomb } }, /^factory.yaml: .*anchor/],
    [
      'with too many files',
      { files: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`skills/s/${n}.md`, ''])) },
      /more than 1000 files/,
    ],
    [
      'with a giant file',
      { files: { ...files, 'agents/a/agent.md': 'x'.repeat(1024 * 1024 + 1) } },
      /^agents\/a\/agent.md: is too large/,
    ],
    [
      'with one file at many paths',
      {
        files: {
          ...files,
          ...Object.fromEntries([...'abcdefghi'].map((n) => [`skills/s/${n}`, 'x'.repeat(1_000_000)])),
        },
      },
      /more than 8 MB together/,
    ],
    [
      'whose files have names that a terminal obeys, or that are endless',
      { files, links: { 'agents/\u001b[31m\n/a': '/etc', [`agents/${'d/'.repeat(250)}a`]: '/etc' } },
      /^agents\/\\u001b\[31m\\n\/a: the path has control characters\nagents\/[d/]{193}: the path has more than 400 characters$/,
    ],
    ['that is not text', { files: { ...files, 'agents/a/agent.md': '\u0000' } }, /^agents\/a\/agent.md: .*NUL/],
    ['without a definition', { files: { 'README.md': 'a' } }, /^factory.yaml: is missing/],
  ])('%s is refused with the file', async (_name, content, message) => {
    await host.replace('acme', 'hostile', content);
    const outcome = await read();
    if (outcome.kind !== 'faulty') throw new Error(JSON.stringify(outcome).slice(0, 500));
    expect(outcome.errors.map((each) => `${each.path}: ${each.message}`).join('\n')).toMatch(message);
    expect(readdirSync(parent)).toEqual([]);
  });

  test('with more misspelt file names than a program can have arguments is refused', async () => {
    const folder = 'f'.repeat(200);
    const letters = Array.from({ length: 120 }, (_, n) => String.fromCodePoint(0x4e00 + n));
    await host.commitTree('acme', 'hostile', async (objects) => {
      const id = await objects.file('');
      const names = letters.flatMap((a) => letters.map((b) => [`skills${a}${b}`, 'file', id] as const));
      return await objects.folder([[folder, 'folder', await objects.folder(names)]]);
    });
    expect(await read({ folder })).toMatchObject({
      kind: 'faulty',
      errors: [{ path: 'factory.yaml', message: 'the definition has more than 1000 files' }],
    });
    expect(readdirSync(parent)).toEqual([]);
  });

  test('is read without binary files that the definition does not use', async () => {
    const scorers = { 'scorers/a.bin': 'a\u0000b', 'scorers/b.md': 'text' };
    await host.replace('acme', 'hostile', { files: { ...files, ...scorers } });
    const outcome = await read();
    if (outcome.kind !== 'files') throw new Error(JSON.stringify(outcome));
    expect(
      storedFiles(outcome.files)
        .map(({ path: name }) => name)
        .filter((name) => !(name in files)),
    ).toEqual(['scorers/b.md']);
  });

  test('is refused if its pack is too large or reading it takes too long', async () => {
    await host.replace('acme', 'hostile', { files });
    expect(await read({ maxPackBytes: 100 })).toMatchObject({
      kind: 'unreadable',
      message: expect.stringContaining('too large'),
    });
    expect(await read({ readMs: 0 })).toMatchObject({
      kind: 'unreadable',
      message: expect.stringContaining('in time'),
    });
    expect(readdirSync(parent)).toEqual([]);
  });

  test('is read from a branch even if many other branch names begin with its name', async () => {
    const commit = await host.replace('acme', 'many', { files });
    const letters = 'abcdefghijklmnopq';
    for (const a of letters)
      for (const b of letters) await host.alias('acme', 'many', `main-${a}${b}${'x'.repeat(190)}`, 'main');
    expect(await read({ repo: 'many', branch: 'main' })).toMatchObject({ kind: 'files', commit });
    expect(await read({ repo: 'many', branch: 'main-' })).toMatchObject({
      kind: 'unreadable',
      message: 'acme/many has too many branches whose names begin with main-.',
    });
  });

  test('is refused if it does not have the branch or the folder of the source', async () => {
    await host.replace('acme', 'hostile', { files });
    expect(await read({ branch: 'none' })).toMatchObject({ message: 'acme/hostile has no branch none.' });
    expect(await read({ folder: 'none' })).toMatchObject({ kind: 'faulty' });
    expect(await read({ folder: 'factory.yaml' })).toMatchObject({ kind: 'faulty' });
  });

  test('is read only in the folder of the source, and files outside of that folder are ignored', async () => {
    const content = { ...filesOf(baseFiles, 'of/us/'), 'agents/foreman/agent.md': 'not ours' };
    await host.replace('acme', 'hostile', { files: content, links: { 'of/README': '/etc/passwd' } });
    const outcome = await read({ folder: 'of/us' });
    if (outcome.kind !== 'files') throw new Error(JSON.stringify(outcome));
    expect(Object.fromEntries(storedFiles(outcome.files).map((file) => [file.path, file.content]))).toEqual(files);
  });
});

describe('the name of a repository', () => {
  test.each(['acme/site', 'acme/site.git', `${host.url}/acme/site`, `${host.url}/acme/site.git/`])(
    'may be %s',
    (text) => {
      expect(parseRepository(text, codeHosts)).toEqual({ owner: 'acme', repo: 'site' });
    },
  );

  test.each([
    ['https://elsewhere.example/acme/site.git', /must be on the code host/],
    [`${host.url.replace('//', '//a:b@')}/acme/site`, /must have no credential/],
    [`${host.url}/more/acme/site`, /must be on the code host/],
    ['../../etc', /must be owner\/repo/],
    ['acme', /must be owner\/repo/],
    ['file:///etc/passwd', /must be on the code host/],
    ['git@host:acme/site', /must be owner\/repo/],
  ])('must not be %s', (text, message) => {
    expect(parseRepository(text, codeHosts)).toMatch(message);
  });
});

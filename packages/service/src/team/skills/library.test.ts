/** These tests read repositories from a real code host, with the real git. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../../../../../test/fakes/git-host.ts';
import type { ChosenCredential } from '../code-hosts/credential.ts';
import { codeHostUrl } from '../code-hosts/url.ts';
import { type LibraryOptions, openSkillLibrary, type SkillOutcome } from './library.ts';
import { parseSkillSpec } from './spec.ts';

const skill = (name: string, more = '', body = `Do ${name}.`) =>
  `---\nname: ${name}\ndescription: About ${name}.\n${more}---\n${body}\n`;

let host: FakeGitHost;
let whole: FakeGitHost;
let folder: string;
beforeAll(async () => {
  [host, whole] = await Promise.all([
    startFakeGitHost({ accepts: (name, password) => !name.startsWith('acme/private') || password === 'right' }),
    startFakeGitHost({ leavesOutFiles: false }),
  ]);
  folder = await mkdtemp(path.join(tmpdir(), 'skills-'));
});
afterAll(async () => {
  await Promise.all([host.close(), whole.close(), rm(folder, { recursive: true, force: true })]);
});

const none = { kind: 'none' } as const;
const credential = (id: string, password: string): ChosenCredential => ({
  kind: 'credential',
  id,
  credential: { username: 'x', password },
  refused: () => {},
});

const open = (options: Partial<LibraryOptions> = {}, on = host) =>
  openSkillLibrary({ codeHosts: { urlOf: (repository) => codeHostUrl(on.template, repository) }, folder, ...options });
const from = (repo: string, chosen: ChosenCredential = none, teamId = 'team') => ({
  teamId,
  chosen,
  repository: { owner: 'acme', repo },
});

async function read(written: string, library = open(), chosen: ChosenCredential = none): Promise<SkillOutcome> {
  const spec = parseSkillSpec(`acme/${written}`, []);
  if (typeof spec === 'string') throw new Error(spec);
  return await library.read(from(spec.repository.repo, chosen), spec);
}
const list = async (repo: string, library = open(), chosen: ChosenCredential = none) => {
  const found = await library.list(from(repo, chosen), false);
  if (found.kind !== 'skills') throw new Error(found.message);
  return Object.fromEntries(found.skills.map(({ path, text }) => [path, typeof text === 'string' ? text : text.name]));
};

describe('a repository', () => {
  let commit: string;
  beforeAll(async () => {
    const files = {
      'skills/one/SKILL.md': skill('one'),
      'skills/one/scripts/run.sh': 'echo one\n',
      'skills/deep/er/two/SKILL.md': skill('two'),
      '.claude/skills/one/SKILL.md': skill('one', '', 'Another.'),
      '.codex/skills/bad/SKILL.md': '---js\nprocess.exit(1)\n---\n',
      'elsewhere/three/SKILL.md': skill('three'),
      'skills/SKILL.md': skill('skills'),
      'SKILL.md': skill('top'),
      'README.md': 'not a skill',
    };
    commit = await host.commit('acme', 'site', files);
    await whole.commit('acme', 'site', files);
  });

  test.each([
    ['that leaves files out', () => host],
    ['that sends all files', () => whole],
  ])('is searched for skills on a host %s', async (_, on) => {
    expect(await list('site', open({}, on()))).toEqual({
      'skills/one/SKILL.md': 'one',
      'skills/deep/er/two/SKILL.md': 'two',
      '.claude/skills/one/SKILL.md': 'one',
      '.codex/skills/bad/SKILL.md': expect.stringContaining('"---js"'),
    });
    expect(await readdir(folder)).toEqual([]);
  });

  test.each([
    ['site:one', 'skills/one/SKILL.md', ['SKILL.md', 'scripts/run.sh']],
    ['site:two', 'skills/deep/er/two/SKILL.md', ['SKILL.md']],
    ['site:elsewhere/three/SKILL.md', 'elsewhere/three/SKILL.md', ['SKILL.md']],
    ['site:SKILL.md', 'SKILL.md', ['SKILL.md']],
  ])('returns the skill %s with its files and its commit', async (written, at, files) => {
    const found = await read(written);
    if (found.kind !== 'skill') throw new Error(found.message);
    expect(found).toMatchObject({ commit, skill: { path: at } });
    expect(found.skill.files.map((file) => file.path)).toEqual(files);
  });

  test.each([
    ['site:four', 'has no skill four'],
    ['site:elsewhere/SKILL.md', 'no file elsewhere/SKILL.md'],
    ['site:.codex/skills/bad/SKILL.md', 'no other language is read'],
    ['nothing:one', 'has no repository acme/nothing'],
  ])('does not return %s, and the answer contains the reason', async (written, why) => {
    expect(await read(written)).toMatchObject({
      kind: expect.stringMatching(/^un/),
      message: expect.stringContaining(why),
    });
  });
});

test('a skill with links or submodules, or with too many or too large files, is refused', async () => {
  const random = (bytes: number) => randomBytes(bytes).toString('latin1').replaceAll('\0', 'x');
  await host.commit(
    'acme',
    'hostile',
    {
      'skills/good/SKILL.md': skill('good'),
      'skills/giant/SKILL.md': `${skill('giant')}${random(600_000)}`,
      'skills/large/SKILL.md': `${skill('large')}${'x'.repeat(70_000)}`,
      'skills/heavy/SKILL.md': skill('heavy'),
      'skills/heavy/data.bin': random(1_500_000),
      'skills/linked/SKILL.md': skill('linked'),
      'skills/module/SKILL.md': skill('module'),
      'skills/named/SKILL.md': skill('named'),
      'skills/named/a\\b': '',
      'skills/many/SKILL.md': skill('many'),
      ...Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`skills/many/${n}`, ''])),
      'skills/lfs/SKILL.md': skill('lfs'),
      'skills/lfs/.gitattributes': '* filter=lfs diff=lfs merge=lfs -text\n',
      '.gitmodules': '[submodule "x"]\n\tpath = skills/x\n\turl = ext::sh -c touch% /tmp/x\n',
    },
    { 'skills/linked/passwd': '/etc/passwd', 'skills/out': '../../outside', '.warp': '/etc' },
    { 'skills/x': 'a'.repeat(40), 'skills/module/x': 'b'.repeat(40) },
  );
  const found = await list('hostile');
  expect(found).toEqual({
    'skills/good/SKILL.md': 'good',
    'skills/heavy/SKILL.md': 'heavy',
    'skills/lfs/SKILL.md': 'lfs',
    'skills/giant/SKILL.md': 'is larger than 64 KB',
    'skills/large/SKILL.md': 'is larger than 64 KB',
    'skills/linked/SKILL.md': expect.stringContaining('symbolic link in its folder'),
    'skills/module/SKILL.md': expect.stringContaining('submodule in its folder'),
    'skills/named/SKILL.md': expect.stringContaining('cannot be stored everywhere'),
    'skills/many/SKILL.md': 'has more than 100 files in its folder',
  });
  for (const [name, why] of [
    ['giant', 'larger than 64 KB'],
    ['heavy', 'more than 1 MB'],
    ['linked', 'symbolic link'],
    ['many', 'more than 100 files'],
  ])
    expect(await read(`hostile:${name}`)).toMatchObject({ kind: 'unfit', message: expect.stringContaining(why ?? '') });
  expect(await read('hostile:lfs')).toMatchObject({ kind: 'skill' });
  await host.commit('acme', 'itself', { 'target.md': skill('a') }, { 'SKILL.md': 'target.md' });
  expect(await read('itself:SKILL.md')).toMatchObject({
    kind: 'unfit',
    message: expect.stringContaining('is a symbolic link'),
  });
});

test('folders that contain each other without end are refused', async () => {
  const range = (count: number) => Array.from({ length: count }, (_, n) => String(n));
  await host.commitTree('acme', 'bomb', async (objects) => {
    const file = await objects.file(skill('a'));
    let folder = await objects.folder([['SKILL.md', 'file', file]]);
    // Makes a pack of a few kilobytes whose folders contain 10 to the power of 30 files.
    for (const _ of range(30)) folder = await objects.folder(range(10).map((n) => [n, 'folder', folder] as const));
    return await objects.folder([['skills', 'folder', folder]]);
  });
  expect(await open().list(from('bomb'), false)).toMatchObject({
    kind: 'unreadable',
    message: expect.stringContaining('has more files than are read'),
  });
  expect(await readdir(folder)).toEqual([]);
});

describe('a code host with wrong answers', () => {
  const unreadable = async (repo: string, options: Partial<LibraryOptions> = {}, on = host) => {
    const found = await open(options, on).list(from(repo), false);
    expect(await readdir(folder)).toEqual([]);
    return found.kind === 'unreadable' ? found.message : found;
  };

  test('is not read beyond the limit if an answer has too many bytes', async () => {
    const big = randomBytes(200_000).toString('latin1');
    await whole.commit('acme', 'giant', { 'skills/a/SKILL.md': skill('a'), big });
    expect(await unreadable('giant', { maxPackBytes: 131_072 }, whole)).toContain('more than 0.125 MB');
  });

  test.each([
    ['never', () => {}, 'in time'],
    ['without an end', (response: ServerResponse) => endless(response), 'not of git'],
    ['slowly', (response: ServerResponse) => void response.writeHead(200).write('001e'), 'in time'],
    ['with what is not git', (response: ServerResponse) => void response.end('<html>'), 'not of git'],
    ['with an older protocol', (response: ServerResponse) => void response.end('0008version0000'), 'not of git'],
    ['with a failure', (response: ServerResponse) => void response.writeHead(500).end(), 'answered 500'],
    [
      'with another host',
      (response: ServerResponse) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'answered 302',
    ],
  ])('makes the read fail if the host answers %s', async (_, answer, why) => {
    const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a/b.git`);
    const found = await unreadable('b', { codeHosts: { urlOf: () => url }, readMs: why === 'in time' ? 500 : 60_000 });
    expect(found).toContain(why);
    server.close();
    server.closeAllConnections();
  });
});

/** This answer writes lines of the protocol until the reader disconnects. */
function endless(response: ServerResponse): void {
  response.writeHead(200);
  const more = () => {
    while (!response.destroyed && response.write('000ahello\n'.repeat(1_000)));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}

describe('the cache', () => {
  const packs = () => host.requests.filter(({ method }) => method === 'POST').length;

  test('answers from memory for five minutes; later or on refresh, it reads the skills again only if the commit has changed', async () => {
    let now = 0;
    const library = open({ now: () => now });
    await host.commit('acme', 'cached', { 'skills/a/SKILL.md': skill('a') });
    expect(Object.values(await list('cached', library))).toEqual(['a']);
    const before = packs();
    await list('cached', library);
    expect(packs()).toBe(before);
    now += 5 * 60_000 + 1;
    await list('cached', library);
    expect(packs()).toBe(before + 1);
    await host.commit('acme', 'cached', { 'skills/b/SKILL.md': skill('b') });
    expect(Object.values(await list('cached', library))).toEqual(['a']);
    await library.list(from('cached'), true);
    expect(Object.values(await list('cached', library))).toEqual(['a', 'b']);
  });

  test('reads a repository only once for all concurrent callers', async () => {
    const library = open();
    await host.commit('acme', 'busy', { 'skills/a/SKILL.md': skill('a') });
    const before = packs();
    await Promise.all([...Array(20)].map((_, n) => library.list(from('busy', none, `team ${n}`), n % 2 === 0)));
    // All callers that came after the first read had begun share one further request for the commit.
    expect(packs()).toBe(before + 4);
    await Promise.all([...Array(20)].map(() => read('busy:a', library)));
    expect(packs()).toBe(before + 7);
  });

  test('shows, after a refresh, a push that arrived during an earlier read', async () => {
    const library = open();
    await host.commit('acme', 'moving', { 'skills/a/SKILL.md': skill('a') });
    const before = packs();
    const earlier = library.list(from('moving'), false);
    // Wait until the host has answered with the first commit.
    await expect.poll(packs, { interval: 1 }).toBeGreaterThan(before + 1);
    await host.commit('acme', 'moving', { 'skills/b/SKILL.md': skill('b') });
    const found = await library.list(from('moving'), true);
    expect(found.kind === 'skills' && found.skills.map(({ path }) => path)).toEqual([
      'skills/a/SKILL.md',
      'skills/b/SKILL.md',
    ]);
    await earlier;
  });

  test('never shows content that was read with one credential to a user of another credential', async () => {
    const library = open();
    await host.commit('acme', 'private', { 'skills/secret/SKILL.md': skill('secret') });
    expect(Object.values(await list('private', library, credential('1', 'right')))).toEqual(['secret']);
    expect(await read('private:secret', library, credential('1', 'right'))).toMatchObject({ kind: 'skill' });
    for (const chosen of [none, credential('2', 'wrong')]) {
      expect(await library.list(from('private', chosen), false)).toMatchObject({ kind: 'unreadable', why: 'refused' });
      expect(await read('private:secret', library, chosen)).toMatchObject({ kind: 'unreadable', why: 'refused' });
    }
  });
});

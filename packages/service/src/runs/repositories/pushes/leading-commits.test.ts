import { execFileSync } from 'node:child_process';
import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { descendsFrom, readLeadingCommits } from './leading-commits.ts';

const folder = newFolder();
const env = {
  PATH: process.env.PATH ?? '',
  HOME: folder,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.invalid',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.invalid',
};
const git = (args: readonly string[], input = '') => execFileSync('git', args, { cwd: folder, env, input });

git(['init', '--quiet', '--initial-branch=main', '.']);
const message = 'A message that is long enough to be worth a delta, with many words that are in every commit. ';
const numbers = Array.from({ length: 30 }, (_, index) => index);
// Use `git fast-import`, because it makes all commits in one process. Other git commands would need three processes for each commit.
const made = git(
  ['fast-import', '--quiet', '--date-format=now'],
  numbers
    .map((index) => {
      const text = `${message.repeat(3)}${index}\n`;
      const file = `M 100644 inline file\ndata ${String(index).length}\n${index}\n`;
      return `commit refs/heads/main\nmark :1\ncommitter a <a@example.invalid> now\ndata ${text.length}\n${text}${file}get-mark :1\n`;
    })
    .join(''),
);
const ids = made.toString().trim().split('\n');
const [root = ''] = ids;
const tip = ids.at(-1) ?? '';
const packOf = (...args: string[]) =>
  git(['pack-objects', '--stdout', '--revs', '--thin', '--quiet', ...args], `${tip}\n^${root}\n`);

describe('the commits of a pack', () => {
  it.each([
    ['deltas by distance', ['--delta-base-offset']],
    ['deltas by id', []],
    ['no deltas', ['--window=0']],
  ])('are read from a pack of git with %s', (_name, args) => {
    const { commits, isCut } = readLeadingCommits(packOf(...args), 40);
    expect(isCut).toBe(false);
    expect(new Set(commits.keys())).toEqual(new Set(ids.slice(1)));
    expect(descendsFrom(commits, tip, root)).toBe(true);
    expect(descendsFrom(commits, ids[1] ?? '', tip)).toBe(false);
    expect(descendsFrom(commits, tip, 'f'.repeat(40))).toBe(false);
  });

  it('are found even if the pack stores a commit as a delta', () => {
    const delta = [...packOf('--delta-base-offset').subarray(12)].length;
    expect(delta).toBeLessThan([...packOf('--window=0').subarray(12)].length);
  });

  it('that are read from a pack that is cut at any byte also belong to the whole pack', () => {
    const pack = packOf('--delta-base-offset');
    const all = readLeadingCommits(pack, 40).commits;
    // Collect the differences and call `expect` once, because a call for each commit would take most of the test's time.
    const others: unknown[] = [];
    for (let end = 0; end < pack.length; end += 7)
      for (const [id, parents] of readLeadingCommits(pack.subarray(0, end), 40).commits)
        if (all.get(id)?.join() !== parents.join()) others.push([end, id, parents]);
    expect(others).toEqual([]);
    expect(readLeadingCommits(pack.subarray(0, 200), 40).isCut).toBe(true);
  });

  it('are never found with wrong parents, even if bytes of the pack are changed', () => {
    const pack = packOf('--delta-base-offset');
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const others: unknown[] = [];
    for (let round = 0; round < 500; round += 1) {
      const changed = Buffer.from(pack);
      for (let change = 0; change < 3; change += 1) changed[12 + random(600)] = random(256);
      for (const [id, parents] of readLeadingCommits(changed, 40).commits) {
        const place = ids.indexOf(id);
        if (place >= 0 && parents.join() !== ids[place - 1]) others.push([round, id, parents]);
      }
    }
    expect(others).toEqual([]);
  });

  it('are read only up to a delta that has more than a hundred thousand instructions', () => {
    const headerOf = (type: number, size: number) =>
      Buffer.from([
        0x80 | (type << 4) | (size & 15),
        0x80 | ((size >> 4) & 127),
        0x80 | ((size >> 11) & 127),
        size >> 18,
      ]);
    const varint = (size: number) => Buffer.from([0x80 | (size & 127), 0x80 | ((size >> 7) & 127), size >> 14]);
    const commit = Buffer.from(`tree ${'a'.repeat(40)}\n\nwords`);
    const first = Buffer.concat([headerOf(1, commit.length), deflateSync(commit)]);
    const second = (copies: number) => {
      // The delta consists of many instructions that each copy the first byte of the base.
      const delta = Buffer.concat([varint(commit.length), varint(copies), Buffer.alloc(2 * copies, '9001', 'hex')]);
      return Buffer.concat([headerOf(6, delta.length), Buffer.from([first.length]), deflateSync(delta)]);
    };
    const read = (copies: number) =>
      readLeadingCommits(Buffer.concat([Buffer.from('PACK\0\0\0\x02\0\0\0\x02', 'latin1'), first, second(copies)]), 40);
    expect(read(1_000).commits.size).toBe(2);
    expect(second(101_000).length).toBeLessThan(1_000);
    expect(read(101_000)).toMatchObject({ isCut: false });
    expect(read(101_000).commits.size).toBe(1);
  });

  it('are read only up to an object that is larger than its stated size, and only up to the limit of the total size', () => {
    const header = Buffer.from([0x50, 0x41, 0x43, 0x4b, 0, 0, 0, 2, 0, 0, 0x10, 0]);
    const bomb = deflateSync(Buffer.alloc(50_000_000));
    const small = Buffer.concat([header, Buffer.from([0x15]), bomb]);
    expect(readLeadingCommits(small, 40).commits.size).toBe(0);
    const size = 200_000;
    const one = Buffer.concat([
      Buffer.from([0x90 | (size & 15), 0x80 | ((size >> 4) & 127), 0x80 | ((size >> 11) & 127), size >> 18]),
      deflateSync(Buffer.alloc(size)),
    ]);
    const many = Buffer.concat([header, ...Array.from({ length: 100 }, () => one)]);
    expect(readLeadingCommits(many, 40)).toMatchObject({ isCut: false });
  });
});

/**
 * Compares the images of deploy/Dockerfile with the images of bin/images. A container engine executes the Dockerfile, but the tests have
 * no Debian image. So the stage `build` is an image with a shell, which gets the files that `bin/images --unpacked` writes. These tests
 * need a minute, so they run only with `bin/test-long`.
 */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ImageKind, imageKinds, imageOf } from '../deploy/images/images.ts';
import type { TarEntry } from '../packages/worker/src/sidecar/archive.ts';
import { startTestEngine, type TestEngine } from './support/container-engine.ts';
import { isLong } from './support/long.ts';

const root = path.resolve(import.meta.dirname, '..');
const started = isLong ? await startTestEngine() : 'bin/test-long runs it';
const title = typeof started === 'string' ? `deploy/Dockerfile (skipped: ${started})` : 'deploy/Dockerfile';
const limitMs = 300_000;

describe.skipIf(typeof started === 'string')(title, { timeout: limitMs, tags: 'long' }, () => {
  const { engine, makeImage, makeRoot, [Symbol.asyncDispose]: stopEngine } = started as TestEngine;
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-dockerfile-'));
  const images = path.join(folder, 'images');
  let entries: ReadonlyMap<ImageKind, readonly TarEntry[]>;
  const entriesOf = (kind: ImageKind): readonly TarEntry[] => entries.get(kind) ?? [];
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

  beforeAll(() => {
    // A folder can be in both layers.
    const unique = (list: readonly TarEntry[]) => [...new Map(list.map((entry) => [entry.name, entry])).values()];
    entries = new Map(imageKinds.map((kind) => [kind, unique(imageOf(kind, root).layers.flat())]));
    execFileSync(process.execPath, [path.join(root, 'deploy/images/build.ts'), '--unpacked', '--output', images]);
  }, limitMs);
  afterAll(async () => {
    await stopEngine();
    rmSync(folder, { recursive: true });
  }, limitMs);

  test.each(imageKinds)(
    'copies the files of the %s, which have the same paths, modes and content as in its layers',
    (kind) => {
      const place = path.join(images, kind);
      // Unlike readdir of Node, find does not follow links.
      const listing = execFileSync('find', [place, '-mindepth', '1', '-printf', '%P\\t%y\\t%m\\t%l\\n'], {
        encoding: 'utf8',
        maxBuffer: 1 << 26,
      });
      const found = listing
        .trim()
        .split('\n')
        .map((line) => {
          const [name = '', type, mode, link] = line.split('\t');
          if (type === 'l') return [name, 'link', link];
          return type === 'd' ? [`${name}/`, mode, ''] : [name, mode, sha256(readFileSync(path.join(place, name)))];
        });
      const expected = entriesOf(kind).map(({ name, mode, content }) =>
        content === 'folder'
          ? [name, mode.toString(8), '']
          : 'link' in content
            ? [name, 'link', content.link]
            : [name, mode.toString(8), sha256(content.bytes)],
      );
      const [known, copied] = [new Set(expected.map(String)), new Set(found.map(String))];
      const differing = [...known, ...copied].filter((each) => !(known.has(each) && copied.has(each)));
      expect(differing).toEqual([]);
      expect(found.length).toBe(expected.length);
    },
  );

  test('makes images whose paths, modes and owners are the same as in the layers of bin/images', async () => {
    const context = path.join(folder, 'context');
    execFileSync('cp', ['-a', images, context]);
    // The content of the files is compared above. Empty files save time here.
    const files = execFileSync('find', [context, '-type', 'f'], { encoding: 'utf8', maxBuffer: 1 << 26 });
    for (const file of files.trim().split('\n')) truncateSync(file);
    const dockerfile = readFileSync(path.join(root, 'deploy/Dockerfile'), 'utf8')
      .replace(/^RUN apt-get (?:.*\\\n)*.*\n/m, '')
      .replace(/^COPY \. \.$/m, 'COPY . /images/')
      .replace('bin/images --unpacked --output /images', 'rm /images/Dockerfile');
    writeFileSync(path.join(context, 'Dockerfile'), dockerfile);
    const tar = execFileSync('tar', ['-C', context, '--owner=0', '--group=0', '-c', '.'], { maxBuffer: 1 << 28 });
    await makeImage('shell:1', await makeRoot(), ['ENV PATH=/bin']);
    for (const kind of imageKinds) {
      const name = `runyard-${kind}:docker`;
      const query = { target: kind, t: name, networkmode: 'none', buildargs: JSON.stringify({ BASE: 'shell:1' }) };
      const log = await text(await engine.stream('POST', '/build', { query, tar, answerMs: 0 }));
      expect(log).toContain(`Successfully tagged ${name}`);
      const { Id } = await engine.call<{ Id: string }>('POST', '/containers/create', { json: { Image: name } });
      const archive = await buffer(await engine.stream('GET', `/containers/${Id}/export`, { answerMs: 0 }));
      const listing = execFileSync('tar', ['--list', '--verbose', '--numeric-owner', '--quoting-style=literal'], {
        input: archive,
        encoding: 'utf8',
        maxBuffer: 1 << 26,
      });
      const rows = listing
        .trim()
        .split('\n')
        .map((line) => /^(\S+) (\S+) +\S+ \S+ \S+ (.*?)(?: -> .*)?$/.exec(line) ?? []);
      const found = new Map(rows.map(([, mode, owner, entry = '']) => [entry, `${mode} ${owner}`]));
      const expected = entriesOf(kind).map(
        ({ name: entry, mode, content, owner = 0 }) =>
          [
            entry,
            `${lettersOf(mode, content === 'folder' ? 'd' : 'link' in content ? 'l' : '-')} ${owner}/${owner}`,
          ] as const,
      );
      const wrong = expected.filter(([entry, state]) => found.get(entry) !== state);
      expect(wrong.map(([entry, state]) => [entry, state, found.get(entry)])).toEqual([]);
      const known = new Set(expected.map(([entry]) => entry));
      // The engine adds these files to every container.
      const added = /^(?:\.dockerenv|dev\/.*|etc\/(?:hosts|hostname|resolv\.conf|mtab))$/;
      expect([...found.keys()].filter((entry) => !known.has(entry) && !added.test(entry))).toEqual([]);
    }
  });
});

/** Returns type and mode as tar lists them, such as `drwxr-xr-x`. */
function lettersOf(mode: number, type: string): string {
  const letters = [...'rwxrwxrwx'].map((letter, index) => (mode & (1 << (8 - index)) ? letter : '-'));
  if (mode & 0o1000) letters[8] = mode & 1 ? 't' : 'T';
  return type + letters.join('');
}

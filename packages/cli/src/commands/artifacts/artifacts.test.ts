import { lstatSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import { expect, onTestFinished, test } from 'vitest';
import { pickArtifact, safeFileName, writeBytes } from './artifacts.ts';

test.each([
  ['report.pdf', 'report.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['..\\..\\boot.ini', 'boot.ini'],
  ['.bashrc', '_bashrc'],
  ['..', '_'],
  ['-rf', '_rf'],
  ['/', 'artifact'],
  ['', 'artifact'],
  ['a\u001b[2Jb\nc.txt', 'ab c.txt'],
  ['C:x?.txt', 'C_x_.txt'],
])('the artifact %j is stored in the file %j', (name, expected) => expect(safeFileName(name)).toBe(expected));

test('safeFileName shortens a name that is too long for a file system, and keeps the extension', () => {
  const name = safeFileName(`${'語'.repeat(300)}.txt`);
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
  expect(name).toMatch(/^語+\.txt$/);
});

test('a download that breaks off removes the incomplete file, but does not remove a device', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-artifacts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const nowhere = path.join(folder, 'nowhere');
  symlinkSync('/dev/null', nowhere);
  const brokenOff = async function* () {
    yield Buffer.from('half');
    throw new Error('the connection was lost');
  };
  for (const output of [nowhere, path.join(folder, 'file')]) {
    const written = writeBytes({ out: () => {}, outBytes: async () => {} }, Readable.from(brokenOff()), 'a.txt', {
      output,
    });
    await expect(written).rejects.toThrow('the connection was lost');
  }
  expect(readdirSync(folder)).toEqual(['nowhere']);
  expect(lstatSync(nowhere).isSymbolicLink()).toBe(true);
});

const artifact = (uid: string, filename: string, title?: string): ArtifactItem => ({
  artifact_type: 'FILE',
  created_at: '2026-01-01T00:00:00Z',
  data: {
    artifact_uid: uid,
    filename,
    filepath: `out/${filename}`,
    mime_type: 'text/plain',
    ...(title ? { title } : {}),
  },
});

test('pickArtifact finds an artifact by the title if no file has this name', () => {
  const artifacts = [
    artifact('a', 'one.txt', 'Report'),
    artifact('b', 'Report', 'two.txt'),
    artifact('c', 'three.txt', 'Sums'),
  ];
  const uidOf = (name: string) =>
    JSON.stringify(pickArtifact(artifacts, name).data).match(/"artifact_uid":"(\w)"/)?.[1];
  expect([uidOf('Sums'), uidOf('Report'), uidOf('one.txt')]).toEqual(['c', 'b', 'a']);
  expect(() => pickArtifact(artifacts, 'Total')).toThrow(
    /the run has no artifact "Total"; it has:\n {2}a {2}one\.txt {2}Report/,
  );
});

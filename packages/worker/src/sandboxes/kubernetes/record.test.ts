import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSecret, proofOf, readRecord } from './record.ts';

const record = JSON.stringify({
  execution: { task_id: 't', execution_id: 'e' },
  limits: { memoryMb: 1, processes: 1, tmpMb: 1, diskMb: 1 },
  limited: false,
  assigned_at: 1,
});
const job = (uid: string, proof: string, text = record) => ({
  metadata: { uid, annotations: { 'runyard.dev/record': text, 'runyard.dev/proof': proof } },
});

test('readRecord accepts a record only if a worker of the same data folder has written the record for the same Job', () => {
  const proof = proofOf('secret', 'uid-1', record);
  expect(readRecord('secret', job('uid-1', proof))).toMatchObject({ execution: { execution_id: 'e' } });
  // Rejected: annotations that were copied to another Job, a changed record, a record of another data folder, and a record without a proof.
  expect(readRecord('secret', job('uid-2', proof))).toBeUndefined();
  expect(readRecord('secret', job('uid-1', proof, record.replace('"e"', '"f"')))).toBeUndefined();
  expect(readRecord('other', job('uid-1', proof))).toBeUndefined();
  expect(readRecord('secret', job('uid-1', ''))).toBeUndefined();
  expect(readRecord('secret', {})).toBeUndefined();
});

test('openSecret creates the secret of a data folder only once, and rejects an incomplete secret', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-secret-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  // A worker that dies while it writes the secret leaves such a file.
  await writeFile(path.join(folder, 'kubernetes-secret.new'), 'ab');
  const secret = openSecret(folder);
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(openSecret(folder)).toBe(secret);
  await writeFile(path.join(folder, 'kubernetes-secret'), '');
  expect(() => openSecret(folder)).toThrow('is damaged');
});

import { expect, test } from 'vitest';
import { registeredRetention } from '../../../test/retention.ts';
import { runBlobs } from './delete.ts';

test('deleting a run also deletes its blobs of all domains', () => {
  expect(new Set(runBlobs)).toEqual(new Set(registeredRetention.blobs));
});

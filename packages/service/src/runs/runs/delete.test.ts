import { expect, test } from 'vitest';
import { registeredRetention } from '../../../test/retention.ts';
import { runBlobs } from './delete.ts';

test('the delete of a run includes the blobs of all domains', () => {
  expect(new Set(runBlobs)).toEqual(new Set(registeredRetention.blobs));
});

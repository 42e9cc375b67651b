/** The limit of the bytes that a team stores, so that no team fills the disk of all. */
import { ReportArtifactResponse } from '@runyard/contract/agent-protocol';
import { UsageReport } from '@runyard/contract/budgets';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_TEAM_STORAGE_MB: '1' } });
const bytes = 'x'.repeat(600 * 1024);

async function putArtifact(runToken: string) {
  const reported = await service.request('POST', '/harness-support/report-artifact', {
    key: runToken,
    body: { artifact_type: 'FILE', data: { filename: 'a' } },
  });
  const { upload_url = '' } = ReportArtifactResponse.parse(reported.body);
  return await service.request<{ detail?: string }>('PUT', upload_url, { key: null, raw: bytes });
}
const keepWorkspace = (runToken: string, turn: number, raw = bytes) =>
  service.request<{ detail?: string }>('PUT', `/harness-support/workspace?turn=${turn}`, {
    key: runToken,
    raw,
    headers: { 'content-type': 'application/octet-stream' },
  });
const storage = async () => UsageReport.parse((await service.request('GET', '/usage')).body).storage;

test('bounds the artifacts and kept workspaces of a team together, and shows them in its usage', async () => {
  const max_bytes = 1024 * 1024;
  expect(await storage()).toEqual({ bytes: 0, max_bytes });
  const one = await service.startExecution();
  const other = await service.startExecution();
  expect((await putArtifact(one.runToken)).status).toBe(200);
  expect(await storage()).toEqual({ bytes: bytes.length, max_bytes });
  const refused = [await putArtifact(other.runToken), await keepWorkspace(other.runToken, 1)];
  expect(refused.map(({ status }) => status)).toEqual([413, 413]);
  for (const { body } of refused) expect(body.detail).toContain('RUNYARD_TEAM_STORAGE_MB');

  // An archive takes the place of the earlier one.
  const small = bytes.slice(0, 300 * 1024);
  for (const turn of [1, 2, 3]) expect((await keepWorkspace(other.runToken, turn, small)).status).toBe(200);
  expect((await storage()).bytes).toBe(bytes.length + small.length);

  const theirs = await service.request('GET', '/usage', { key: service.otherKey });
  expect(UsageReport.parse(theirs.body).storage.bytes).toBe(0);
});

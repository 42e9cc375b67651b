/** Tests artifacts of all five types: a real sandbox reports them, and readers get them during and after the run. */
import { beforeAll, describe, expect, test } from 'vitest';
import { eventually, type System } from '../support/system.ts';

const prompt = `Make something of every kind.

\`\`\`sh
printf 'made' > made.txt && report-artifact made.txt --title Result
printf 'png' > page.png && report-artifact page.png --type SCREENSHOT --description "The page"
printf '# Steps\\n' > plan.md && report-artifact plan.md --type PLAN --title Plan
report-artifact --type EXTERNAL_REFERENCE --url 'HTTPS://Tracker.Example:443/ISSUE/7/#note' --reference-type issue
\`\`\`

\`\`\`sh
mkdir bin && printf '#!/bin/sh\\necho https://github.example/o/r/pull/12\\n' > bin/gh && chmod +x bin/gh
bin/gh pr create --fill --head topic
\`\`\`
`;

export const describeArtifacts = (system: System) =>
  describe('the system (artifacts)', () => {
    let runId: string;
    beforeAll(async () => {
      runId = await system.createRun(prompt);
      expect(await system.untilEnded(runId)).toMatchObject({ state: 'SUCCEEDED' });
    }, 60_000);

    const open = (path: string) => fetch(path.startsWith('http') ? path : `${system.baseUrl()}/api/v1${path}`);
    const artifactOf = async (type: string) => {
      const item = (await system.run(runId)).artifacts?.find(({ artifact_type }) => artifact_type === type);
      return item?.data as Record<string, string>;
    };

    test('shows artifacts of all five types in the run', async () => {
      const items = (await system.run(runId)).artifacts?.map(({ artifact_type, data }) => [artifact_type, data]);
      expect(items).toEqual([
        ['FILE', expect.objectContaining({ filename: 'made.txt', filepath: 'made.txt', size_bytes: 4 })],
        ['SCREENSHOT', expect.objectContaining({ mime_type: 'image/png', description: 'The page' })],
        ['PLAN', expect.objectContaining({ title: 'Plan', artifact_uid: expect.any(String) })],
        ['EXTERNAL_REFERENCE', { reference_type: 'issue', url: 'HTTPS://Tracker.Example:443/ISSUE/7/#note' }],
        ['PULL_REQUEST', { url: 'https://github.example/o/r/pull/12', branch: 'topic', status: 'unknown' }],
      ]);
    });

    test('finds the run of an external reference', async () => {
      const url = encodeURIComponent('https://tracker.example/ISSUE/7');
      expect(await system.call('GET', `/agent/run-by-external-reference?url=${url}`)).toEqual({ run_id: runId });
    });

    test('lets everyone read an artifact while it is shared', async () => {
      const plan = await artifactOf('PLAN');
      expect((await open(`/agent/artifacts/${plan?.artifact_uid}`)).status).toBe(401);
      const shared = await system.call<{ public_url: string }>('POST', `/agent/artifacts/${plan?.artifact_uid}/share`);
      expect(await (await open(shared.public_url)).json()).toMatchObject({ data: { content: '# Steps\n' } });
      const file = await artifactOf('FILE');
      const sharedFile = await system.call<{ public_url: string }>(
        'POST',
        `/agent/artifacts/${file?.artifact_uid}/share`,
      );
      expect(await (await open(sharedFile.public_url)).text()).toBe('made');
      await system.call('DELETE', `/agent/artifacts/${file?.artifact_uid}/share`);
      expect((await open(sharedFile.public_url)).status).toBe(401);
    });

    test('deletes artifacts with their run; a rerun makes artifacts of its own', async () => {
      const uid = (await artifactOf('SCREENSHOT'))?.artifact_uid;
      const { data } = await system.call<{ data: { download_url: string } }>('GET', `/agent/artifacts/${uid}`);
      expect(await (await open(data.download_url)).text()).toBe('png');
      const again = await system.call<{ run_id: string }>('POST', `/agent/runs/${runId}/rerun`);
      expect(await system.untilEnded(again.run_id)).toMatchObject({ state: 'SUCCEEDED', prompt });
      await eventually('deletion of the run', () =>
        system.call('DELETE', `/agent/runs/${runId}`).then(
          () => true,
          (error: Error) => {
            if (!error.message.includes('409')) throw error;
            return false;
          },
        ),
      );
      expect((await open(data.download_url)).status).toBe(404);
      await system.call('GET', `/agent/runs/${runId}`, undefined, 404);
      expect((await system.run(again.run_id)).artifacts).toHaveLength(5);
    });
  });

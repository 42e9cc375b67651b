/** Tests that the whole output of a command is kept as an artifact, with an agent process. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

const results = () => of('action_result');
const uploads = () => fake.requests.filter(({ method }) => method === 'PUT');
const lines = (text: string | undefined) => text?.trimEnd().split('\n').length;

test('an output that is longer than the conversation keeps is uploaded whole, and the action names the artifact', async () => {
  await start({ max_output_file_bytes: 64 * 1024 * 1024, ...sh('seq 1 200000', 'seq 1 100') });
  await ended();
  const [long, short] = results();
  expect(long).toMatchObject({ output_bytes: 1_288_895, output_artifact_uid: expect.any(String) });
  expect(short).not.toHaveProperty('output_artifact_uid');
  expect(fake.artifacts).toMatchObject([
    {
      artifact_type: 'FILE',
      data: {
        filename: `output-${long?.action_id}.txt`,
        title: 'Output of seq 1 200000',
        size_bytes: 1_288_895,
        output_of_action: long?.action_id,
      },
    },
  ]);
  const upload = fake.artifacts[0]?.bytes;
  expect(lines(upload?.toString())).toBe(200_000);
  expect(upload?.toString().startsWith('1\n2\n') && upload.toString().endsWith('\n200000\n')).toBe(true);
  // The conversation has the head and the tail.
  expect(fake.output(long?.action_id ?? '').length).toBeLessThan(66_000);
  expect(readdirSync(agent.workspace).filter((name) => name.startsWith('.runyard'))).toEqual([]);
});

test('an output that is longer than the limit of the team is kept up to this limit', async () => {
  await start({ max_output_file_bytes: 1_000_000, ...sh('yes a-line | head -c 50000000') });
  await ended();
  expect(results()[0]).toMatchObject({ output_bytes: 50_000_000, exit_code: 0 });
  expect(fake.artifacts[0]?.bytes).toHaveLength(1_000_000);
  expect(fake.artifacts[0]?.data).toMatchObject({ description: 'The first 1000000 of 50000000 bytes' });
});

test.each([undefined, 0])('no output is kept if the limit of the team is %s', async (max_output_file_bytes) => {
  await start({ ...(max_output_file_bytes === undefined ? {} : { max_output_file_bytes }), ...sh('seq 1 200000') });
  await ended();
  expect(results()[0]).not.toHaveProperty('output_artifact_uid');
  expect(uploads()).toEqual([]);
});

test('a command succeeds and a notice gives the reason if its output cannot be kept', async () => {
  await start(
    { max_output_file_bytes: 1_000_000, ...sh('seq 1 200000', 'echo next') },
    {
      prepare: (service) => {
        service.fault = ({ path }) =>
          path.endsWith('/report-artifact') ? { status: 400, body: '{"detail":"full"}' } : undefined;
      },
    },
  );
  await ended();
  expect(results().map(({ exit_code }) => exit_code)).toEqual([0, 0]);
  const notices = of('notice').filter(({ name }) => name === 'output_not_kept');
  expect(notices, JSON.stringify(fake.requests.map(({ path }) => path))).toMatchObject([
    { data: { reason: expect.stringContaining('full') } },
  ]);
});

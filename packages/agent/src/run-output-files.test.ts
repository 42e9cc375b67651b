/** Tests that the whole output of a command is kept as an artifact, with an agent process. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { agent, ended, fake, of, scripted, sh, start } from '../test/run.ts';

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

describe('an external harness', () => {
  test('has the whole output of each long command as an artifact, whether it streams the output or sends it at the end', async () => {
    await start({ ...scripted('long-outputs'), max_output_file_bytes: 64 * 1024 * 1024 });
    await ended();
    const [streamed, atEnd, short] = results();
    expect(streamed).toMatchObject({ state: 'completed', output_bytes: 300_000, output_artifact_uid: 'artifact-1' });
    expect(atEnd).toMatchObject({ state: 'completed', output_bytes: 200_000, output_artifact_uid: 'artifact-2' });
    expect(short).not.toHaveProperty('output_artifact_uid');
    expect(fake.artifacts.map(({ data, bytes }) => [data, bytes?.length])).toEqual([
      [expect.objectContaining({ title: 'Output of make streamed', output_of_action: streamed?.action_id }), 300_000],
      [expect.objectContaining({ title: 'Output of make at the end', output_of_action: atEnd?.action_id }), 200_000],
    ]);
    // The end of a command comes before the text that follows it.
    const events = fake.events.map(({ type }) => type);
    expect(events.indexOf('action_result')).toBeLessThan(events.indexOf('text'));
  });

  test('loses nothing but the file if an output cannot be kept', async () => {
    await start(
      { ...scripted('long-outputs'), max_output_file_bytes: 1_000_000 },
      {
        prepare: (service) => {
          service.fault = ({ method }) =>
            method === 'PUT' ? { status: 413, body: '{"detail":"no room"}' } : undefined;
        },
      },
    );
    await ended();
    expect(results().map(({ state }) => state)).toEqual(['completed', 'completed', 'completed']);
    expect(
      of('text')
        .map(({ text }) => text)
        .join(''),
    ).toContain('after the first command');
    expect(of('notice').filter(({ name }) => name === 'output_not_kept')).toHaveLength(2);
  });
});

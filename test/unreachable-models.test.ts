/** Tests runs with a model endpoint that does not answer at first, and answers later. */
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { fakeModelKeys, startFakeModels } from './fakes/models.ts';
import { describeSystem } from './support/describe-system.ts';
import { freePort } from './support/free-port.ts';

const port = await freePort();
let line: Server | undefined;
let models: Awaited<ReturnType<typeof startFakeModels>> | undefined;
afterAll(async () => {
  line?.close();
  await models?.close();
});

const env = { RUNYARD_MODEL_BASE_URL: `http://127.0.0.1:${port}/local/v1`, RUNYARD_MODEL_KEY: fakeModelKeys.local };

describeSystem('a configured endpoint of models', { env }, (system) => {
  const endpoint = `127.0.0.1:${port}`;

  test('while the model endpoint does not answer, runs fail soon, the error names its address and the reason, and no run becomes a runbook', async () => {
    const prompt = '```sh\necho ran\n```';
    const [byDefault, byName] = await Promise.all([
      system.createRun(prompt),
      system.createRun(prompt, { config: { model_id: 'local/llama' } }),
    ]);
    for (const runId of [byDefault, byName]) {
      const run = await system.untilEnded(runId);
      expect(run).toMatchObject({
        state: 'ERROR',
        status_message: { error_code: 'resource_unavailable', message: expect.stringContaining(endpoint) },
      });
      expect(run.status_message?.message).toContain('connection refused (ECONNREFUSED)');
      expect(run.status_message?.message).not.toContain('after 4 tries');
      const tookMs = Date.parse(run.updated_at) - Date.parse(run.started_at ?? run.created_at);
      expect(tookMs).toBeLessThan(60_000);
    }
  });

  test('a run without a model gets the first model of the endpoint as soon as the endpoint answers, and keeps this model', async () => {
    models = await startFakeModels();
    const upstream = Number(new URL(models.url).port);
    line = createServer((socket) => {
      const onward = connect(upstream, '127.0.0.1');
      socket.on('error', () => onward.destroy());
      onward.on('error', () => socket.destroy());
      socket.pipe(onward).pipe(socket);
    });
    line.listen(port, '127.0.0.1');
    await once(line, 'listening');
    const runId = await system.createRun('Please run `echo from $((40 + 2))`.');
    const run = await system.untilEnded(runId);
    expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    const requested = models.requests.map(({ body }) => body.model);
    expect(new Set(requested.filter((model) => model !== undefined))).toEqual(new Set(['fake-local']));
  });
});

/**
 * Runs the program oz-agent-worker itself in docker mode against this service, with a real engine, the sidecar image and a registry on loopback.
 * `bin/test-public-worker` starts it. Prints the run's end and its time.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Environment } from '@runyard/contract/environments';
import { sidecarContent } from '../../packages/worker/src/sidecar/content.ts';
import { tarOf } from '../../packages/worker/src/sidecar/tar.ts';
import { startFakeImageRegistry } from '../../test/fakes/image-registry.ts';
import { startTestEngine } from '../../test/support/container-engine.ts';
import { eventually, startSystem } from '../../test/support/system.ts';

const [program = ''] = process.argv.slice(2);
const host = '172.30.77.1';
const root = path.resolve(import.meta.dirname, '../..');
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const engine = await startTestEngine(`${host}/24`);
if (typeof engine === 'string') throw new Error(engine);
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-public-worker-'));
const box = await engine.makeRoot();
const entries = await sidecarContent({ root, busybox: '/bin/busybox', readableNode: false });
const registry = await startFakeImageRegistry({
  'team/runyard-agent:1': { layer: Buffer.concat([...tarOf(entries)]) },
  'team/box:1': { layer: execFileSync('tar', ['-C', box, '-c', '.'], { maxBuffer: 1 << 28 }) },
});
const system = await startSystem({
  workers: [],
  env: { RUNYARD_HOST: host, RUNYARD_SIDECAR_IMAGE: `${registry.address}/team/runyard-agent:1` },
});
const config = path.join(folder, 'worker.yaml');
await writeFile(config, 'worker_id: my-worker\nbackend:\n  docker: {}\n');
const url = system.baseUrl();
const args = ['--config-file', config, '--server-root-url', url, '--log-level', 'debug'];
const socket = `${url.replace('http', 'ws')}/api/v1/selfhosted/worker/ws`;
let output = '';
const worker = spawn(program, [...args, '--web-socket-url', socket], {
  env: { PATH: process.env.PATH, HOME: folder, DOCKER_HOST: engine.host, WARP_API_KEY: system.key },
  stdio: ['ignore', 'pipe', 'pipe'],
});
for (const stream of [worker.stdout, worker.stderr])
  stream.on('data', (text: Buffer) => {
    output += text;
  });
const exited = new Promise((resolve) => worker.once('close', resolve));

/** Runs a script in the image, and returns its end. */
async function play(script: string): Promise<string> {
  const body = { config: { name: 'Box', docker_image: `${registry.address}/team/box:1` } };
  const { uid } = await system.call<Environment>('POST', '/agent/environments', body, 201);
  const began = performance.now();
  const more = { config: { environment_id: uid, worker_host: 'my-worker' } };
  const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, more);
  const run = await system.untilEnded(runId, 300_000);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const said = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String));
  if (run.state !== 'SUCCEEDED' || !said.includes('6 of 6')) {
    say(output);
    throw new Error(`${run.state}: ${run.status_message?.message} ${said}`);
  }
  return `${run.state} after ${seconds} s`;
}

try {
  await eventually('the connection of the worker', async () => output.includes('Successfully connected'));
  const script = 'report-artifact --help >/dev/null; test -d /agent && echo "$((2 * 3)) of 6"';
  say(`first run, which pulls both images and copies the sidecar: ${await play(script)}`);
  say(`second run: ${await play(script)}`);
} finally {
  worker.kill('SIGKILL');
  await exited;
  await system.stop();
  await registry[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  execFileSync('ip', ['link', 'delete', 'docker0']);
  await rm(folder, { recursive: true, force: true });
}

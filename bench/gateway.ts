/**
 * Measures the overhead of the model gateway: the time to the first byte, the memory while it forwards a long answer, and the time to
 * check a request. Client, gateway and provider are one process.
 */
import http, { type IncomingMessage } from 'node:http';
import { checkRequest } from '../packages/service/src/edges/gateway/models/check-request.ts';
import { endpointOf } from '../packages/service/src/edges/gateway/models/endpoints.ts';
import { startTestGateway } from '../packages/service/test/gateway.ts';
import { fakeModelKeys } from '../test/fakes/models.ts';
import { median, memoryOf, report } from './report.ts';
import { inTurns, spread, spreadColumns, timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 300);
const streamMb = Number(process.env.BENCH_STREAM_MB ?? 300);
const streams = 5;
const promptKb = 80;
const longMb = 15;
const path = '/api/v1/gateway/anthropic/v1/messages';
const modelId = 'anthropic/claude-opus-5-5';

/** Returns a request whose conversation has this number of bytes, in messages of 8 KB. */
function conversation(bytes: number): Buffer {
  const content = 'It fails in the "linker".\n'.repeat(8192 / 26);
  const messages = Array.from({ length: Math.ceil(bytes / 8192) }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content,
  }));
  return Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', max_tokens: 100, stream: true, messages }));
}

const gateway = await startTestGateway();
const agent = new http.Agent({ keepAlive: true });
const { fake } = gateway;

function post(url: string, key: string, body: Buffer): Promise<IncomingMessage> {
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    'anthropic-version': '2023-06-01',
    'x-api-key': key,
  };
  return new Promise((resolve, reject) => {
    http
      .request(url, { agent, method: 'POST', headers }, (response) => {
        if (response.statusCode === 200) resolve(response);
        else reject(new Error(`answered ${response.statusCode}`));
      })
      .once('error', reject)
      .end(body);
  });
}
const direct = (body: Buffer) => post(`${fake.url}/v1/messages`, fakeModelKeys.anthropic, body);
const through = (body: Buffer) => post(gateway.url + path, gateway.token(modelId), body);

/** Returns the milliseconds to the first byte of the answer's body. */
async function firstByte(ask: typeof direct): Promise<number> {
  const started = performance.now();
  const response = await ask(prompt);
  return await new Promise((resolve) => {
    let ms = 0;
    response.once('data', () => {
      ms = performance.now() - started;
    });
    response.once('end', () => resolve(ms));
  });
}

/** Returns by how many megabytes the process grew at most while a long answer was forwarded. */
async function growth(ask: typeof direct): Promise<number> {
  fake.misbehave({ kind: 'flood', bytes: streamMb * 2 ** 20 });
  const before = memoryOf(process.pid).rssMb;
  let most = before;
  let bytes = 0;
  for await (const part of await ask(short)) {
    // Read the memory after about every eight megabytes of the answer.
    if (Math.floor(bytes / 2 ** 23) !== Math.floor((bytes + part.length) / 2 ** 23))
      most = Math.max(most, memoryOf(process.pid).rssMb);
    bytes += part.length;
  }
  if (bytes < streamMb * 2 ** 20) throw new Error(`only ${bytes} bytes came`);
  return most - before;
}

const [prompt, short, long] = [conversation(promptKb * 1024), conversation(1), conversation(longMb * 2 ** 20)];
try {
  const endpoint = endpointOf('anthropic', 'POST', path);
  const target = gateway.models.target(modelId);
  if (endpoint === undefined || endpoint.kind === 'models' || target === undefined) throw new Error('no such endpoint');
  const check = (body: Buffer) =>
    timed(async () => {
      if (!(await checkRequest(endpoint, target, body)).ok) throw new Error('refused');
    });

  fake.script(() => ({ text: ['x'.repeat(64 * 1024)] }));
  const memory = await inTurns({ direct: () => growth(direct), through: () => growth(through) }, streams, 1);
  fake.script(() => ({ text: ['Yes.'] }));
  const first = await inTurns({ direct: () => firstByte(direct), through: () => firstByte(through) }, rounds, 20);
  const checkTimes = await inTurns({ usual: () => check(prompt), long: () => check(long) }, 20);
  const times = (median(first.through) / median(first.direct)).toFixed(1);
  report(
    'The model gateway',
    `All requests use Anthropic's protocol. First byte: ${rounds} requests of ${promptKb} KB, directly and through the gateway, in turns, one after the other. Through the gateway, the first byte takes **${times} times** as long. Memory: an answer of ${streamMb} MB is forwarded, or sent directly, ${streams} times each, in turns. The growth is that of one process, which contains client, gateway and provider. Checking: the gateway checks a request 20 times. It checks in slices of a few milliseconds and does other work between the slices.`,
    ['what', ...spreadColumns],
    [
      ['first byte, direct (ms)', ...spread(first.direct, 2)],
      ['first byte, through the gateway (ms)', ...spread(first.through, 2)],
      [`growth during ${streamMb} MB, direct (MB)`, ...spread(memory.direct, 0)],
      [`growth during ${streamMb} MB, through the gateway (MB)`, ...spread(memory.through, 0)],
      [`checking a body of ${promptKb} KB (ms)`, ...spread(checkTimes.usual, 2)],
      [`checking a body of ${longMb} MB (ms)`, ...spread(checkTimes.long, 0)],
    ],
  );
} finally {
  agent.destroy();
  await gateway.close();
}

/**
 * Measures the requests of one team while another team, or a caller without a key, sends requests as fast as it can. For comparison, sends
 * the same requests beside the same attack to a bare server, which reads the same rows with one statement.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { median, percentile, report } from './report.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const requests = Number(process.env.BENCH_REQUESTS ?? 200);
/** A measurement ends after this time. Beside some attacks, the bare server answers only one request in seconds. */
const longestMs = 15_000;
/** Largest allowed ratio of the p99 to the p99 beside the bare server. */
const goal = 3;

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const target = '/api/v1/agent/runs?limit=20';
const call = async (method: string, at: string, key: string, body?: unknown): Promise<Record<string, string>> => {
  const answer = await fetch(`${system.baseUrl()}/api/v1${at}`, {
    method,
    headers: { ...(key === '' ? {} : { authorization: `Bearer ${key}` }), 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Record<string, string>;
};
const { uid = '' } = await call('POST', '/teams', system.key, { name: 'Other' });
const { key: invitation = '' } = await call('POST', `/teams/${uid}/invitations`, system.key, { role: 'owner' });
const { key: other = '' } = await call('POST', '/team-invitations/accept', '', {
  key: invitation,
  display_name: 'Other',
});
for (const key of [system.key, other])
  for (let n = 0; n < 20; n += 1) await call('POST', '/agent/runs', key, { prompt: `Look at build ${n}.` });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const bare = spawn(process.execPath, [path.join(import.meta.dirname, 'bare-list-server.ts')], {
  env: { PATH: process.env.PATH ?? '', BENCH_DATABASE_URL: embedded.url },
  stdio: ['pipe', 'pipe', 'inherit'],
});
const [line] = (await once(bare.stdout, 'data')) as [Buffer];
const servers = { ours: system.baseUrl(), bare: `http://127.0.0.1:${String(line).trim()}` };

const time = (root: string, agent: http.Agent): Promise<number> =>
  new Promise((resolve, reject) => {
    const at = performance.now();
    const request = http.get(
      `${root}${target}`,
      { agent, headers: { authorization: `Bearer ${system.key}` } },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
        response.resume().once('end', () => resolve(performance.now() - at));
      },
    );
    request.once('error', reject);
  });

type Attack = readonly [title: string, at: string, key: string, connections: number, pipelined: number];

const noAttack: Attack = ['no attack', '/healthz', '', 0, 1];
const attacks: readonly Attack[] = [
  noAttack,
  ['no key, 1 connection with 1,000 `GET /healthz` in each packet', '/healthz', '', 1, 1000],
  ['no key, 40 connections with 1,000 `GET /healthz` in each packet', '/healthz', '', 40, 1000],
  ['another team, 40 connections that list runs', target, other, 40, 1],
  ['another team, 300 connections that list runs', target, other, 300, 1],
  ['another team, 40 connections with 1,000 lists of runs in each packet', target, other, 40, 1000],
];

async function measure(root: string, [, at, key, connections, pipelined]: Attack): Promise<number[]> {
  const attacker = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'attack.ts'), `${root}${at}`, key, String(connections), String(pipelined)],
    { stdio: ['pipe', 'inherit', 'inherit'] },
  );
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  try {
    await delay(1000);
    const sample: number[] = [];
    const end = performance.now() + longestMs;
    while (sample.length < requests && performance.now() < end) sample.push(await time(root, agent));
    return sample;
  } finally {
    agent.destroy();
    attacker.stdin.end();
    await once(attacker, 'exit');
    await delay(500);
  }
}

try {
  for (const root of Object.values(servers)) await measure(root, noAttack);
  const rows: (string | number)[][] = [];
  for (const attack of attacks) {
    const samples = { ours: [] as number[], bare: [] as number[] };
    for (let round = 0; round < rounds; round += 1)
      for (const name of ['bare', 'ours'] as const) samples[name].push(...(await measure(servers[name], attack)));
    const [ours, plain] = [percentile(samples.ours, 0.99), percentile(samples.bare, 0.99)];
    const ratio = ours / plain;
    rows.push([
      attack[0],
      median(samples.bare).toFixed(1),
      plain.toFixed(1),
      median(samples.ours).toFixed(1),
      ours.toFixed(1),
      `${ratio.toFixed(1)}${attack[3] === 0 || ratio <= goal ? '' : ' **missed**'}`,
    ]);
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
  }
  report(
    'Requests of a team beside an attack',
    `One caller of a team lists 20 runs, ${rounds} times ${requests} requests or 15 s, one after another, while another process sends requests as fast as it can. The bare server is node:http with a pool of as many connections to the same database; it reads 20 rows of the table of runs with one statement, checks nothing, and answers \`/healthz\` with a constant. All processes share the cores. Goal: beside an attack, the p99 is at most ${goal} times the p99 of the same requests beside the same attack on the bare server.`,
    ['attack', 'bare p50 ms', 'bare p99 ms', 'p50 ms', 'p99 ms', 'ratio of p99'],
    rows,
  );
} finally {
  bare.stdin.end();
  await system.stop();
}

/**
 * Tests a large artifact on its way from a real sandbox to a folder or bucket and to a person: its bytes, its limits, the memory of the
 * programs that move it, and a service that dies meanwhile.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ArtifactItem, ArtifactResponse } from '@runyard/contract/runs/artifacts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { runyard } from './support/apart.ts';
import { endCommands, runCommand } from './support/command-line.ts';
import { isLong } from './support/long.ts';
import { processesOf } from './support/processes-of.ts';
import { startS3Server } from './support/s3-server.ts';
import { eventually, killHard, type System, sandboxProblem, startSystem } from './support/system.ts';

const mb = 1024 * 1024;
const artifactMb = 2048;
/** Memory of the programs in MB, whatever the size of the artifact is. */
const most = { service: 380, worker: 260, agent: 220 };
const limitMs = 900_000;

const settings = {
  RUNYARD_ARTIFACT_MB: String(artifactMb),
  RUNYARD_RUN_ARTIFACTS_MB: String(artifactMb * 2),
  RUNYARD_SANDBOX_DISK_MB: String(artifactMb * 2 + 512),
};
const prompt = `\`\`\`sh
head -c ${artifactMb * mb} /dev/urandom > large.bin
sha256sum < large.bin
\`\`\`

\`\`\`sh
report-artifact large.bin && rm large.bin
\`\`\`

\`\`\`sh
truncate -s ${artifactMb * mb + 1} larger.bin
report-artifact larger.bin 2>&1 || echo "exit code $?"
\`\`\`
`;

/** A disk, because the folder for temporary files may be in memory. */
const place = '/var/tmp';

const s3 = isLong ? await startS3Server() : { kind: 'missing' as const, reason: 'only with bin/test-long' };
afterAll(async () => {
  if (s3.kind === 'ready') await s3.server.stop();
});
const stores = [
  { name: 'a folder', env: {}, problem: sandboxProblem },
  {
    name: 'a bucket',
    env: s3.kind === 'ready' ? { ...s3.server.env, RUNYARD_BLOBS: `s3://${s3.server.bucket}/large` } : {},
    problem: sandboxProblem ?? (s3.kind === 'ready' ? null : s3.reason),
  },
] as const;

for (const { name, env, problem } of stores) {
  const isFolder = name === 'a folder';
  describe.skipIf(problem !== null)(
    `${name}${problem === null ? '' : ` (skipped: ${problem})`}`,
    { tags: 'long' },
    () => {
      let system: System;
      let folder: string;
      let runId: string;
      let file: Extract<ArtifactItem, { artifact_type: 'FILE' }>['data'];
      let outputs: string[];
      let memory: Record<keyof typeof most, number>;

      beforeAll(async () => {
        folder = await mkdtemp(path.join(place, 'runyard-large-'));
        const dataDir = await mkdtemp(path.join(place, 'runyard-large-'));
        // The users of sandboxes must be able to enter the folder. Otherwise the worker puts the sandboxes elsewhere.
        await chmod(dataDir, 0o711);
        system = await startSystem({ dataDir, env: { ...settings, ...env } });
        const watched = watchMemory(system);
        runId = await system.createRun(prompt);
        const run = await system.untilEnded(runId, limitMs);
        memory = watched.end();
        expect(run, await system.logs()).toMatchObject({ state: 'SUCCEEDED' });
        outputs = await outputsOf(system, runId);
        expect(run.artifacts).toHaveLength(1);
        file = run.artifacts?.[0]?.data as typeof file;
      }, limitMs);
      afterAll(async () => {
        await system?.stop();
        await rm(folder, { recursive: true, force: true });
      });
      afterEach(endCommands);

      const read = async () =>
        (await system.call<ArtifactResponse>('GET', `/agent/artifacts/${file.artifact_uid}`)) as Extract<
          ArtifactResponse,
          { artifact_type: 'FILE' }
        >;
      const get = (...args: string[]) =>
        runCommand([runyard, 'artifacts', 'get', runId, ...args], {
          cwd: folder,
          env: { RUNYARD_BASE_URL: system.baseUrl(), RUNYARD_API_KEY: system.key, RUNYARD_DATA_DIR: folder },
        });

      test('stores the bytes of the sandbox', async () => {
        expect(file).toMatchObject({ filename: 'large.bin', size_bytes: artifactMb * mb });
        expect((await read()).data.sha256).toBe(outputs[0]?.slice(0, 64));
      });

      test('gets the artifact through programs whose memory does not grow with its size', () => {
        for (const program of ['service', 'worker', 'agent'] as const) {
          expect(memory[program], program).toBeGreaterThan(20);
          expect(memory[program], program).toBeLessThan(most[program]);
        }
      });

      test('does not get a larger artifact: the command names size, limit and setting', () => {
        const [first, second] = (outputs[2] ?? '').split('\n');
        expect(first).toMatch(
          /^report-artifact: the service refused the artifact: The artifact has [\d,]+ bytes; at most [\d,]+ bytes \(.*\) \(RUNYARD_ARTIFACT_MB\)/,
        );
        expect(second).toBe('exit code 1');
      });

      test(
        'answers ranges, and the command `artifacts get` continues an interrupted download',
        async () => {
          const { data } = await read();
          const begun = 10 * mb;
          const range = await fetch(data.download_url, { headers: { range: `bytes=0-${begun - 1}` } });
          expect([range.status, range.redirected]).toEqual([206, !isFolder]);
          const etag = range.headers.get('etag') ?? '';
          const tagged = (tag: string) =>
            fetch(data.download_url, { headers: { range: 'bytes=0-4', 'if-range': tag } }).then(async (answer) => {
              await answer.body?.cancel();
              return answer.status;
            });
          // The S3 server of this test ignores If-Range, so the command compares SHA-256 values instead.
          expect([await tagged(etag), await tagged('"other"')]).toEqual([206, isFolder ? 200 : 206]);
          const beyond = await fetch(data.download_url, { headers: { range: `bytes=${artifactMb * mb}-` } });
          expect(beyond.status).toBe(416);
          writeFileSync(
            path.join(folder, `large.bin.${data.sha256?.slice(0, 16)}.part`),
            Buffer.from(await range.arrayBuffer()),
          );
          const done = await get('large.bin');
          expect(done, done.output).toMatchObject({ code: 0 });
          expect(done.output).toBe('runyard: the download continues after 10 MB\nlarge.bin\n');
          expect(await sha256Of(path.join(folder, 'large.bin'))).toBe(data.sha256);
          expect(readdirSync(folder).filter((each) => each.endsWith('.part'))).toEqual([]);
          await rm(path.join(folder, 'large.bin'));
        },
        limitMs,
      );

      test.runIf(isFolder && isLong)(
        'has all bytes once if the service is killed during the upload',
        async () => {
          const incoming = path.join(system.dataDir, 'blobs/incoming');
          const begun = async () => {
            const names = await readdir(incoming);
            const sizes = await Promise.all(
              names.map((each) => stat(path.join(incoming, each)).catch(() => undefined)),
            );
            return sizes.some((found) => (found?.size ?? 0) > 16 * mb);
          };
          const killedId = await system.createRun(prompt);
          await eventually('the upload', begun, limitMs, 20);
          await killHard(system.service());
          await system.startService();
          const run = await system.untilEnded(killedId, limitMs);
          expect(run).toMatchObject({ state: 'SUCCEEDED' });
          expect(run.artifacts).toHaveLength(1);
          const uid = (run.artifacts?.[0]?.data as typeof file | undefined)?.artifact_uid;
          const [sum] = await outputsOf(system, killedId);
          const again = await system.call<ArtifactResponse>('GET', `/agent/artifacts/${uid}`);
          expect(again.data).toMatchObject({ size_bytes: artifactMb * mb, sha256: sum?.slice(0, 64) });
          // After the end of the run, the service still stores the transcript.
          await expect.poll(() => readdir(incoming)).toEqual([]);
          const blobs = (await readdir(path.join(system.dataDir, 'blobs/objects'), { recursive: true })).filter(
            (each) => each.includes(String(uid)),
          );
          expect(blobs).toHaveLength(1);
        },
        limitMs,
      );
    },
  );
}

/** Returns the outputs of the commands of a run. */
async function outputsOf(system: System, runId: string): Promise<string[]> {
  const { steps } = await system.call<{
    steps: { messages: { content: { type: string; output?: { text: string } }[] }[] }[];
  }>('GET', `/agent/runs/${runId}/conversation`);
  return steps
    .flatMap(({ messages }) => messages.flatMap(({ content }) => content))
    .filter(({ type }) => type === 'action_result')
    .map(({ output }) => output?.text ?? '');
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(file)) hash.update(piece);
  return hash.digest('hex');
}

/** Measures the highest memory of the service, the worker and the agent, in MB. */
function watchMemory(system: System): { end(): Record<keyof typeof most, number> } {
  const peaks = { service: 0, worker: 0, agent: 0 };
  const measure = (program: keyof typeof most, pid: number | undefined) => {
    try {
      const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      peaks[program] = Math.max(peaks[program], Math.round(Number(kb ?? 0) / 1024));
    } catch {
      // The process has ended.
    }
  };
  const timer = setInterval(() => {
    measure('service', system.service().pid);
    measure('worker', system.worker().pid);
    for (const { pid, command } of processesOf(system.dataDir))
      if (command.includes('/agent/node ')) measure('agent', pid);
  }, 100);
  return {
    end() {
      clearInterval(timer);
      return peaks;
    },
  };
}

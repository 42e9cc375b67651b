/** Tests a backup of a system with runs in progress, and a copy of the system that is restored from this backup. */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ArtifactResponse } from '@runyard/contract/runs/artifacts';
import { expect, onTestFinished, test } from 'vitest';
import { runCommand } from './support/command-line.ts';
import { describeSystem } from './support/describe-system.ts';
import { giveRuntime } from './support/head-start.ts';
import { runyardFile } from './support/programs.ts';
import { eventually, type System, startSystem } from './support/system.ts';

const runyard = await runyardFile();
const env = {
  RUNYARD_CHECKPOINT_SECONDS: '1',
  RUNYARD_WORKER_SLOTS: '2',
  // The restored copy has executions of a worker that never connects to the copy. With short limits, their leases end soon.
  RUNYARD_ADOPT_SECONDS: '5',
  RUNYARD_RECONNECT_GRACE_SECONDS: '5',
};

/** Three commands. The second one waits until the test lets it continue. */
const waiting = ['echo one >> done', 'while ! [ -e go ]; do sleep 0.05; done; echo two >> done', 'cat done']
  .map((script) => `\`\`\`sh\n${script}\n\`\`\``)
  .join('\n\n');
const secretValue = 'value-of-the-stored-secret';

describeSystem('a backup', { env }, (system) => {
  const call = (dataDir: string, ...args: string[]) =>
    runCommand([runyard, ...args], { cwd: system.dataDir, env: { RUNYARD_DATA_DIR: dataDir } });
  const keyFile = () => path.join(system.dataDir, 'secrets-key');

  /** Returns the run, its conversation, its timeline, its transcript and its artifacts. */
  const everythingOf = async (of: System, runId: string) => {
    const run = await of.run(runId);
    const artifacts = await Promise.all(
      (run.artifacts ?? []).map(async ({ data }) => {
        const { data: found } = await of.call<ArtifactResponse>(
          'GET',
          `/agent/artifacts/${'artifact_uid' in data ? data.artifact_uid : ''}`,
        );
        return 'download_url' in found ? await (await fetch(found.download_url)).text() : null;
      }),
    );
    const parts = ['conversation', 'timeline', 'transcript'].map((part) =>
      of.call('GET', `/agent/runs/${runId}/${part}`).catch((error: Error) => error.message),
    );
    return JSON.parse(JSON.stringify([run, artifacts, await Promise.all(parts)]).replaceAll(of.baseUrl(), ''));
  };

  /** Returns a function that lets the second command of a run continue and waits for the end of the run. */
  const letContinue = async (of: System) => {
    const line = (await of.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    const all = path.join(String(JSON.parse(line).folder), 's');
    return async (runId: string) => {
      await eventually(`end of ${runId}`, async () => {
        for (const id of await readdir(all)) await writeFile(path.join(all, id, 'workspace/go'), '').catch(() => {});
        return (await of.run(runId)).state !== 'INPROGRESS';
      });
    };
  };

  test('is restored as a paused system: ended runs are unchanged, and after `resume`, the other runs continue or fail', {
    tags: 'long',
    timeout: 300_000,
  }, async () => {
    await system.call('PUT', '/secrets/TOKEN', { scope: 'personal', value: secretValue });
    const key = (await readFile(keyFile(), 'utf8')).trim();
    const half = key.length / 2;
    const ended = await system.createRun(
      `\`\`\`sh\nprintf made > made.txt && report-artifact made.txt --title Made; echo "${key.slice(0, half)}""${key.slice(half)}"\n\`\`\``,
    );
    expect(await system.untilEnded(ended)).toMatchObject({ state: 'SUCCEEDED' });
    const lost = await system.createRun(waiting);
    const resumed = await system.createRun(waiting, { config: { on_worker_loss: 'resume' } });
    for (const id of [lost, resumed]) await system.until(id, ({ state }) => state === 'INPROGRESS');
    const queued = await system.createRun('```sh\necho begun\n```', {
      config: { secrets: [{ name: 'TOKEN', variable: 'TOKEN' }] },
    });
    const before = await everythingOf(system, ended);
    expect(before[1]).toEqual(['made']);

    const file = path.join(system.dataDir, 'all.backup');
    const made = await call(system.dataDir, 'backup', file);
    expect(made, made.output).toMatchObject({ code: 0 });
    expect(made.output).toContain(`keep a copy of ${keyFile()} at another place`);
    expect((await call(system.dataDir, 'backup', file)).output).toContain('exists already');
    expect((await call(system.dataDir, 'restore', file)).output).toContain('stop it first');
    expect((await call(system.dataDir, 'doctor')).output).toMatch(/backup +the last one was made/);

    const bytes = await readFile(file);
    const raw = Buffer.from(key, 'base64');
    for (const text of [raw, key, raw.toString('hex'), system.key, secretValue])
      expect(bytes.includes(text)).toBe(false);

    const dataDir = path.join(system.dataDir, 'copy');
    await mkdir(dataDir);
    const restored = await call(dataDir, 'restore', file);
    expect(restored, restored.output).toMatchObject({ code: 0 });
    expect(restored.output).toContain(`${path.join(dataDir, 'secrets-key')} is missing`);
    expect(restored.output).toContain('until bin/runyard resume');
    await copyFile(keyFile(), path.join(dataDir, 'secrets-key'));
    await giveRuntime(dataDir, 'runtime');
    const copy = await startSystem({ env, dataDir });
    onTestFinished(() => copy.stop());

    expect(await (await fetch(`${copy.baseUrl()}/readyz`)).text()).toContain('paused since');
    expect((await call(dataDir, 'status')).output).toContain('paused since');
    expect(await everythingOf(copy, ended)).toEqual(before);
    const ofTheCopy = await copy.createRun('```sh\ntrue\n```');
    const states = () => Promise.all([lost, resumed, queued, ofTheCopy].map(async (id) => (await copy.run(id)).state));
    expect(await states()).toEqual(['INPROGRESS', 'INPROGRESS', 'QUEUED', 'QUEUED']);

    expect((await call(dataDir, 'resume')).output).toContain('start now');
    expect((await call(dataDir, 'resume')).output).toContain('is not paused');
    expect(await copy.untilEnded(lost, 120_000)).toMatchObject({ state: 'ERROR' });
    await (await letContinue(copy))(resumed);
    for (const id of [resumed, queued, ofTheCopy])
      expect(await copy.untilEnded(id, 120_000)).toMatchObject({ state: 'SUCCEEDED' });

    // The copy has not changed the runs of the system from which the backup was made.
    const stillOf = async (id: string) => (await system.run(id)).state;
    expect([await stillOf(lost), await stillOf(resumed)]).toEqual(['INPROGRESS', 'INPROGRESS']);
  });

  test('can be written and read through pipes, and is not restored if the blob folder belongs to another database', async () => {
    const file = path.join(system.dataDir, 'piped.backup');
    const dataDir = path.join(system.dataDir, 'other-copy');
    const piped = (script: string, env: Record<string, string>) =>
      runCommand(['sh', '-c', `${script} "$1"`, runyard, file], { cwd: system.dataDir, env });
    const made = await piped('"$0" backup - | cat >', { RUNYARD_DATA_DIR: system.dataDir });
    expect(made, made.output).toMatchObject({ code: 0 });
    const blobs = { RUNYARD_BLOBS: path.join(system.dataDir, 'blobs') };
    const refused = await piped('"$0" restore - <', { RUNYARD_DATA_DIR: dataDir, ...blobs });
    expect(refused, refused.output).toMatchObject({ code: 1 });
    expect(refused.output).toContain('has the blobs of another database');
    const restored = await piped('"$0" restore - <', { RUNYARD_DATA_DIR: dataDir });
    expect(restored, restored.output).toMatchObject({ code: 0 });
  });
});

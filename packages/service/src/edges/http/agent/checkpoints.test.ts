/** Tests checkpoints of workspaces, which a sandbox stores in the middle of a turn. */
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { openLostMachines } from '../../../../test/lost-machines.ts';

const { service, taskOf, beginRun, lose, blobsNow, next, letTimePass } = await openLostMachines();
const { db } = service.deps;

describe('a checkpoint', () => {
  test('that is incomplete does not replace the last checkpoint', async () => {
    const first = await beginRun();
    await first.mark(1);
    await first.put(1, Buffer.from('whole'));
    await letTimePass(first);
    await first.mark(2);
    const blobs = await blobsNow();
    await new Promise<void>((resolve) => {
      const put = httpRequest(`${service.baseUrl}/api/v1/harness-support/workspace?turn=1&checkpoint=2`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${first.runToken}`, 'transfer-encoding': 'chunked' },
      });
      put.on('error', () => resolve());
      put.write(randomBytes(100_000), () => put.destroy(new Error('cut')));
    });
    await expect.poll(() => db.query('SELECT FROM upload_leases', [])).toEqual([]);
    await lose(first);
    const task = await taskOf(await next(first.runId));
    expect(task).toMatchObject({ workspace: { kind: 'archive', size_bytes: 5 } });
    expect(await blobsNow()).toBe(blobs);
  });

  test('that arrives after the archive of the finished turn does not replace this archive', async () => {
    const first = await beginRun();
    await first.mark(1);
    await service.ok('PUT', '/harness-support/workspace?turn=1', {
      key: first.runToken,
      raw: new Uint8Array(Buffer.from('at the end')),
      headers: { 'content-type': 'application/octet-stream' },
    });
    const blobs = await blobsNow();
    await first.put(1, Buffer.from('late'));
    await first.report({ type: 'checkpoint', number: 1, state: 'unchanged', turn: 1 });
    const rows = await db.query('SELECT workspace_bytes, workspace_is_checkpoint FROM executions WHERE id = $1', [
      first.executionId,
    ]);
    expect(rows).toEqual([{ workspace_bytes: 10, workspace_is_checkpoint: false }]);
    expect(await blobsNow()).toBe(blobs);
  });

  test('is refused if no event has announced the checkpoint, if the run has no on_worker_loss resume, or too soon after another checkpoint', async () => {
    const first = await beginRun();
    expect(await first.put(1, Buffer.from('a'))).toBe(409);
    await first.mark(1);
    expect(await first.put(2, Buffer.from('a'))).toBe(409);
    expect(await first.put(1, randomBytes(1024 * 1024 + 1))).toBe(413);
    expect(await first.put(1, Buffer.from('a'))).toBe(200);
    await first.mark(2);
    expect(await first.put(2, Buffer.from('b'))).toBe(429);
    await letTimePass(first);
    expect(await first.put(2, Buffer.from('b'))).toBe(200);
    const other = await beginRun({});
    expect(await taskOf(other)).not.toHaveProperty('checkpoint_seconds');
    await other.mark(1);
    expect(await other.put(1, Buffer.from('a'))).toBe(409);
  });

  test('without changed files keeps the last archive, and stores the new position in the conversation', async () => {
    const first = await beginRun();
    await first.mark(1);
    await first.put(1, Buffer.from('files'));
    await first.say('changed no file');
    await first.mark(2, { done_blocks: 1 });
    await first.report({ type: 'checkpoint', number: 2, state: 'unchanged', turn: 1 });
    await lose(first);
    const task = await taskOf(await next(first.runId));
    expect(task).toMatchObject({ workspace: { kind: 'archive' }, loss: { done_blocks: 1 } });
    expect(task.loss).not.toHaveProperty('record');
  });
});

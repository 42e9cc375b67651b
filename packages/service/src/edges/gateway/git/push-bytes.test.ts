/** Tests pushes through the real service with bytes that git would never send, or with bytes that arrive in an unusual way. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openPushes } from '../../../../test/pushes.ts';

const { host, service, first, siteUrl, startRun, clone, branchAt } = await openPushes();

const none = '0'.repeat(40);
const emptyHead = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
const emptyPack = Buffer.concat([emptyHead, createHash('sha1').update(emptyHead).digest()]);

/** Returns lines of git's protocol (gitprotocol-common), followed by a flush packet. */
const pktLines = (...lines: string[]): Buffer =>
  Buffer.from(`${lines.map((line) => `${(line.length + 4).toString(16).padStart(4, '0')}${line}`).join('')}0000`);

const url = `${siteUrl}/git-receive-pack`;
const headersOf = (runToken: string, more: Record<string, string> = {}) => ({
  authorization: `Bearer ${runToken}`,
  'content-type': 'application/x-git-receive-pack-request',
  ...more,
});

/** Sends a push whole. */
const send = (runToken: string, body: Buffer, more?: Record<string, string>) =>
  fetch(url, { method: 'POST', headers: headersOf(runToken, more), body });

/** Begins a push. The caller ends it. */
const begin = (runToken: string, more?: Record<string, string>): ClientRequest =>
  request(url, { method: 'POST', headers: headersOf(runToken, more) });

describe('a push', () => {
  it('whose last part arrives after the end of its run changes nothing', async () => {
    const { runId, runToken, events } = await clone();
    const push = begin(runToken);
    const answered = once(push, 'response') as Promise<[IncomingMessage]>;
    const command = pktLines(`${none} ${first} refs/heads/too-late\0report-status`);
    push.write(Buffer.concat([command, emptyPack.subarray(0, 12)]));
    const count = () => service.deps.db.query('SELECT FROM pushed_branches WHERE run_id = $1', [runId]);
    await expect.poll(async () => (await count()).length).toBe(1);
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    push.end(emptyPack.subarray(12));
    const [answer] = await answered;
    expect(await text(answer)).toContain('the run has ended or is stopping');
    expect(await events()).toMatchObject([{ branches: [{ branch: 'too-late', result: 'unknown' }] }]);
    expect(await branchAt('too-late')).toBe('');
  });

  it('to a branch that a factory begins to follow during the push changes nothing', async () => {
    const { runToken } = await clone();
    const push = begin(runToken);
    const answered = once(push, 'response') as Promise<[IncomingMessage]>;
    const command = pktLines(`${none} ${first} refs/heads/followed\0report-status`);
    push.write(Buffer.concat([command, emptyPack.subarray(0, 12)]));
    const sent = () => service.deps.db.query("SELECT FROM pushed_branches WHERE branch = 'followed'");
    await expect.poll(async () => (await sent()).length).toBe(1);
    const factory = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'F' } });
    const source = { repository: 'acme/site', branch: 'followed' };
    await service.ok('PUT', `/factory/${factory.body.uid}/source`, { body: source });
    push.end(emptyPack.subarray(12));
    // The code host may have begun its answer already; in this case the gateway cuts the connection.
    const said = await answered.then(([answer]) => text(answer)).catch(() => 'cut');
    expect(said).toMatch(/^cut$|a factory began to take its definition from a branch of this repository/);
    expect(await branchAt('followed')).toBe('');
  });

  it('is refused before a compressed body grows beyond the limit', async () => {
    const { runToken } = await startRun();
    const command = pktLines(`${first} ${none} refs/heads/main\0report-status`);
    const body = gzipSync(Buffer.concat([command, Buffer.from('PACK'), Buffer.alloc(70 * 1024 * 1024)]));
    const push = begin(runToken, { 'content-encoding': 'gzip' });
    const over = new Promise<boolean>((resolve) => {
      push.once('response', () => resolve(true));
      push.once('error', () => resolve(true));
    });
    // The end of the body is never sent, so a gateway that reads to the end would wait.
    push.write(body.subarray(0, -1_000));
    expect(await over).toBe(true);
    push.destroy();
  });

  it('without a ref may have no bytes after its flush packet', async () => {
    const { runToken } = await startRun();
    const asked = host.requests.length;
    expect((await send(runToken, Buffer.concat([pktLines(), emptyPack]))).status).toBe(403);
    expect(host.requests.slice(asked)).toEqual([]);
  });

  it.each(['x\tpush-options', 'push-options=1'])(
    'is refused if push options follow the commands, but the capabilities have %j in place of push-options',
    async (capability) => {
      const { runToken } = await startRun();
      const command = pktLines(`${none} ${first} refs/heads/hidden\0report-status ${capability}`);
      const answer = await send(runToken, Buffer.concat([command, pktLines('merge_request.auto_merge'), emptyPack]));
      expect(await answer.text()).toContain('the list of refs is not followed by a pack');
      expect(await branchAt('hidden')).toBe('');
    },
  );

  it('is decided by the same rules if its body is chunked or compressed', async () => {
    const { git, commit } = await clone();
    await commit('chunks');
    const chunked = await git('-c', 'http.postBuffer=1', 'push', '--quiet', 'origin', 'HEAD:chunks');
    expect(chunked).toMatchObject({ code: 0 });
    const { runToken } = await startRun();
    const body = pktLines(`${first} ${none} refs/heads/main\0 report-status`);
    const compressed = await send(runToken, gzipSync(body), { 'content-encoding': 'gzip' });
    expect(await compressed.text()).toContain('ng refs/heads/main runs delete no branches');
    const unknown = await send(runToken, body, { 'content-encoding': 'lzma' });
    expect(unknown.status).toBe(415);
    const signed = await send(runToken, Buffer.from('0011push-cert\0 a\n0000'));
    expect(signed.status).toBe(403);
    expect(await signed.text()).toContain('push with --no-signed');
    expect(await branchAt('main')).toBe(first);
  });
});

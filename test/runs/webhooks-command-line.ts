/** Tests the factory and webhooks commands. The service accepts webhook deliveries on a second port (the ingress). */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand, startCommand } from '../support/command-line.ts';
import { runyardFile } from '../support/programs.ts';
import type { System } from '../support/system.ts';

const runyard = await runyardFile();

/** The port of the ingress, on which the service accepts deliveries. */
export const describeWebhooksCommandLine = (system: System) =>
  describe('the factory and webhooks commands', () => {
    const received: { id: string; body: string }[] = [];
    const receiver = http.createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      received.push({ id: String(request.headers['x-service-delivery-id']), body });
      response.writeHead(204).end();
    });
    beforeAll(async () => {
      receiver.listen(0, '127.0.0.1');
      await once(receiver, 'listening');
    });
    afterAll(() => void receiver.close());

    const options = () => ({
      cwd: system.dataDir,
      env: {
        RUNYARD_BASE_URL: system.baseUrl(),
        RUNYARD_API_KEY: system.key,
        RUNYARD_DATA_DIR: `${system.dataDir}/none`,
      },
    });
    const call = async (...args: string[]) => {
      const { output, code } = await runCommand([runyard, ...args], options());
      expect([args, code, output]).toEqual([args, 0, output]);
      return output.trim();
    };

    test('manage webhooks, and show and forward the deliveries of webhooks', { timeout: 240_000 }, async () => {
      const factory = await call('factory', 'create', 'Billing', '--alias', 'billing');
      expect(await call('factory', 'list')).toContain(factory);
      const [uid = '', url = '', secret = ''] = (await call('webhooks', 'create', factory, 'Alerts')).split('\n');
      expect(new URL(url).port).not.toBe(new URL(system.baseUrl()).port);
      expect(await call('webhooks', 'list')).toContain(uid);
      expect(await call('webhooks', 'show', uid)).not.toContain(secret);

      const { port } = receiver.address() as AddressInfo;
      const listening = startCommand(
        [runyard, 'webhooks', 'listen', uid, '--to', `http://127.0.0.1:${port}/`],
        options(),
      );
      await listening.sees('Ctrl-C ends this.', 60_000);
      const deliver = async (to: string) => {
        const headers = { authorization: `Bearer ${secret}` };
        return await fetch(to, { method: 'POST', headers, body: '{"status":"firing"}' });
      };
      const answer = await deliver(url);
      expect(answer.status).toBe(202);
      const { delivery_id: id } = (await answer.json()) as { delivery_id: string };
      await listening.sees(`${id} 204`, 30_000);
      expect(received).toEqual([{ id, body: '{"status":"firing"}' }]);
      // With a second port for the ingress, the port of the API accepts no deliveries.
      expect((await deliver(`${system.baseUrl()}/webhooks/w/${uid}`)).status).not.toBe(202);

      const triggers: object[] = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [uid] } }];
      const file = path.join(system.dataDir, 'automation.json');
      await writeFile(file, JSON.stringify({ name: 'A', prompt: 'Look.', triggers, concurrency_key: 'id' }));
      const automation = await call('automations', 'create', factory, file);
      await call('automations', 'disable', automation);
      expect(await call('automations', 'list')).toMatch(new RegExp(`${automation}\\s+${factory}\\s+disabled\\s+A`));
      await call('automations', 'enable', automation);
      const shown = JSON.parse(await call('automations', 'show', automation));
      expect(shown).toMatchObject({ enabled: true, concurrency_key: 'id' });
      const dryRun = await call('automations', 'dry-run', automation, '--delivery', id);
      expect(dryRun).toMatch(new RegExp(`^\\+ ${automation} A: would start a run\n {4}Look\\.\n[^]*delivery ${id}`));
      await writeFile(file, '{"status": "resolved"}');
      expect(await call('webhooks', 'simulate', uid, '--payload', file)).toContain(
        `+ ${automation} A: would start a run`,
      );
      const schedule = { name: 'nightly', cron: '0 3 * * *', timezone: 'Europe/Berlin' };
      triggers.push({ provider: 'schedule', event: 'cron_fired', schedule });
      await writeFile(file, JSON.stringify({ name: 'A', prompt: 'Look.', triggers, agent: 'foreman' }));
      await call('automations', 'update', automation, file);
      expect(await call('automations', 'list')).toMatch(/enabled\s+\d{4}-\d\d-\d\dT0[12]:00:00\S+\s+A/);
      expect(JSON.parse(await call('automations', 'history', automation, '--json'))).toMatchObject({ fires: [] });
      await call('automations', 'disable', automation);
      expect(JSON.parse(await call('automations', 'show', automation))).toMatchObject({
        agent: 'foreman',
        schedules: [{ name: 'nightly', next_run: null }],
      });
      await writeFile(file, '{"status": ["resolved"]}');
      expect(await call('automations', 'test-filter', factory, file, '--delivery', id)).toBe(
        'does not match\n- status: found "firing"; allowed: "resolved"',
      );
      await call('automations', 'delete', automation);

      const replayed = await call('webhooks', 'replay', uid, id);
      expect(await call('webhooks', 'deliveries', uid)).toMatch(
        new RegExp(`${replayed}.*ACCEPTED[\\s\\S]*${id}.*ACCEPTED`),
      );
      await call('webhooks', 'rotate', uid);
      expect((await deliver(url)).status).toBe(401);
      await call('webhooks', 'disable', uid);
      expect((await deliver(url)).status).toBe(404);
      await call('webhooks', 'delete', uid);
      await call('factory', 'delete', factory);
    });
  });

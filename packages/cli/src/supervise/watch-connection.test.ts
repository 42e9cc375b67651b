import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { watchConnection } from './watch-connection.ts';

const folder = newFolder();

test('watchConnection reports when a worker loses the connection to the service and when it connects again, even if the log is rotated', async () => {
  const log = path.join(folder, 'worker.log');
  const line = (fields: object) => `${JSON.stringify({ level: 40, time: Date.now(), ...fields })}\n`;
  const lost = { connection: 'none', msg: 'no connection to http://a: HTTP status 404' };
  writeFileSync(log, line({ ...lost, time: Date.now() - 60_000, msg: 'no connection to an earlier service' }));
  const reported: string[] = [];
  const stop = watchConnection(log, (message) => void reported.push(message), 10);
  // Writes a line in two pieces, because the log may be read in the middle of a line.
  const text = line({ msg: 'another line' }) + line({ connection: 'open', level: 30, msg: 'connected' }) + line(lost);
  appendFileSync(log, text.slice(0, -20));
  await new Promise((resolve) => setTimeout(resolve, 50));
  appendFileSync(log, text.slice(-20) + line({ ...lost, level: 20 }));
  await vi.waitFor(() => expect(reported).toEqual(['the worker has no connection to http://a: HTTP status 404']));
  writeFileSync(log, line({ connection: 'open', level: 30, msg: 'connected' }));
  await vi.waitFor(() => expect(reported[1]).toBe('the worker is connected to the service'));
  stop();
});

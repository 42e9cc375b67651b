import { expect, test } from 'vitest';
import { eventually, testFolder } from '../../test/agent.ts';
import { startChildHarness } from './child-transport.ts';

const count = 300;
const script = `for (let id = 1; id <= ${count}; id++) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, method: 'x' }) + '\\n'); process.stdin.resume();`;

test('gives a late reader all messages in order', async () => {
  const cwd = testFolder();
  let lines = 0;
  const { readable, kill } = startChildHarness({
    command: [process.execPath, '-e', script],
    cwd,
    env: { PATH: process.env.PATH, RUNYARD_AGENT_SOCKET: cwd },
    marker: `RUNYARD_AGENT_SOCKET=${cwd}`,
    events: {
      line: () => {
        lines += 1;
      },
      update: () => {},
      permission: async () => undefined,
      ready: () => Promise.resolve(),
    },
  });
  // The queue of the stream is full. The harness still runs and has sent more messages.
  await eventually(() => lines === 64);
  const ids: unknown[] = [];
  for await (const message of readable) {
    ids.push('id' in message ? message.id : undefined);
    if (ids.length === count) break;
  }
  expect(ids).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  await kill();
});

import { expect, test } from 'vitest';
import { eventually, testFolder } from '../../test/agent.ts';
import { startChildHarness } from './child-transport.ts';

const count = 300;
const script = `for (let id = 1; id <= ${count}; id++) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, method: 'x' }) + '\\n'); process.stdin.resume();`;

test('a reader that starts late gets all messages of the harness in order', async () => {
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
  // Wait until the queue of the stream is full, so that the harness has sent more messages than the queue holds.
  await eventually(() => lines === 64);
  const ids: unknown[] = [];
  for await (const message of readable) {
    ids.push('id' in message ? message.id : undefined);
    if (ids.length === count) break;
  }
  expect(ids).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  await kill();
});

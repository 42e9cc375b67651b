import { expect, onTestFinished, test } from 'vitest';
import { askAgent } from '../sandbox-commands/ask-agent.ts';
import { openAgentSocket } from './socket.ts';

test('the command report-artifact gets lines about a long upload before the answer', async () => {
  const unused = () => Promise.reject(new Error('not asked'));
  const answer = { ok: true as const, artifact_uid: `uid ${'\n'} ${'x'.repeat(200_000)}` };
  const socket = openAgentSocket({
    artifact: async ({ artifact }, onProgress) => {
      for (const part of ['one', 'two\nlines']) onProgress(`${artifact.path}: ${part}`);
      return answer;
    },
    handoff: unused,
    pullRequest: unused,
    github: unused,
    describe: unused,
    result: unused,
    tree: unused,
  });
  onTestFinished(() => socket.close());
  const lines: string[] = [];
  const request = { artifact: { type: 'FILE', path: 'a' }, cwd: '/' };
  expect(await askAgent(socket.path, request, (line) => void lines.push(line))).toEqual(answer);
  expect(lines).toEqual(['a: one', 'a: two\nlines']);
});

import { afterEach, describe, expect, test } from 'vitest';
import { type FakeHarnessSupport, startFakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { startTestAgent } from './test-agent.ts';

let fake: FakeHarnessSupport | undefined;
afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

const start = async (prompt: string) => {
  fake = await startFakeHarnessSupport({ task: { prompt } });
  return { fake, agent: startTestAgent(fake) };
};

describe('agent run with a runbook', () => {
  test('runs the blocks, tells everything in order, finishes and exits with 0', async () => {
    const { fake, agent } = await start('Please\n\n```sh\necho hello\n```\nand\n```bash\necho world >&2\n```\n');
    expect(await agent.exited, agent.stderr()).toBe(0);
    const types = fake.events.filter((event) => event.type !== 'transcript').map((event) => event.type);
    expect(types).toEqual([
      'agent_started',
      'turn_started',
      'action',
      'action_output',
      'action_result',
      'action',
      'action_output',
      'action_result',
      'text',
      'turn_finished',
    ]);
    expect(fake.events.map((event) => event.seq)).toEqual(fake.events.map((_, index) => index + 1));
    expect(fake.text()).toContain('Ran all 2 commands');
    expect(fake.text()).toContain('No language model is configured');
    expect(fake.finished).toEqual([{ success: true, summary: expect.stringContaining('Ran all 2 commands') }]);
    expect(fake.shutdowns).toEqual(['finished']);
    expect(agent.stderr()).toBe('');
  });
});

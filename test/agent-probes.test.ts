/**
 * Tests hostile commands of a run, which have the same user as the agent. Each command attacks the agent, which must fail. As a
 * control, the command attacks a program that it has started itself. This attack must succeed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bubblewrapFeatures } from '../packages/worker/test/worker.ts';
import { lookForToken, openMemories, sendSignal, startVictim } from './support/agent-attacks.ts';
import { type AgentProbe, openAgentProbe } from './support/agent-probe.ts';

const works = (await bubblewrapFeatures()) !== undefined;

describe.skipIf(!works)('a hostile command of a run in a bubblewrap sandbox', () => {
  let probe: AgentProbe;
  beforeAll(async () => {
    probe = await openAgentProbe();
  });
  afterAll(() => probe[Symbol.asyncDispose]());

  test('does not find the run token in the environment, arguments, memory or descriptors of any process', async () => {
    const printed = await probe.attemptInNode((token) => `${startVictim}\n${lookForToken(token)}`);
    expect(JSON.parse(printed)).toEqual([
      'capital control in memory',
      'control in descriptors',
      'control in environ',
      'control in memory',
      'descriptors of the agent: EACCES',
      'environ of the agent: EACCES',
      'memory of the agent: EACCES',
    ]);
  });

  test('cannot write into the memory of the first process of the sandbox, which ends last and is never frozen', async () => {
    const printed = await probe.attemptInNode(() => `${startVictim}\n${openMemories}`);
    expect(JSON.parse(printed)).toEqual({ control: 'opened', first: 'EACCES' });
  });

  test('cannot open an inspector in the agent or end the agent with SIGUSR1', async () => {
    const printed = await probe.attemptInNode(() => startVictim + sendSignal);
    expect(printed).toBe('handled by the agent: 0 by the control: 1\ninspector of the control\nagent refused\n');
  });
});

import { fileURLToPath } from 'node:url';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { afterEach, expect } from 'vitest';
import { type FakeHarnessSupport, startFakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { startTestAgent, type TestAgent } from './agent.ts';

/** The fake service and the agent of the current test. Both end after the test. */
export let fake: FakeHarnessSupport;
export let agent: TestAgent;

afterEach(async () => {
  agent?.child.kill('SIGKILL');
  await agent?.exited;
  await fake?.close();
});

/** Starts a service with this task and an agent process that runs it. */
export async function start(
  task: Partial<AgentTask>,
  options: { socketPath?: string; env?: Record<string, string>; prepare?: (fake: FakeHarnessSupport) => void } = {},
): Promise<void> {
  fake = await startFakeHarnessSupport({
    task,
    ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
  });
  options.prepare?.(fake);
  agent = startTestAgent(fake, options.env === undefined ? {} : { env: options.env });
}

/** Returns a task whose prompt is a runbook of these scripts. */
export const sh = (...scripts: string[]): Partial<AgentTask> => ({
  prompt: scripts.map((script) => `\`\`\`sh\n${script}\n\`\`\``).join('\n\n'),
});

const scriptedAgent = fileURLToPath(new URL('./scripted-agent.mjs', import.meta.url));

/** Returns a task with a harness in a child process. `mode` selects the behaviour of the scripted agent. */
export const scripted = (mode: string): Partial<AgentTask> => ({
  harness: { type: 'acp', command: [process.execPath, scriptedAgent, mode] },
});

type Event = FakeHarnessSupport['events'][number];

/** Returns the events of one type that have arrived. */
export const of = <T extends Event['type']>(type: T) =>
  fake.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);

/** Waits until the agent exits. Then checks its exit code, and checks that the numbers of the events have no gap. */
export async function ended(exitCode = 0): Promise<void> {
  expect(await agent.exited, agent.stderr()).toBe(exitCode);
  numbered();
}

export function numbered(): void {
  expect(fake.events.map((event) => event.seq)).toEqual(fake.events.map((_, index) => index + 1));
}

/** Test support: drives the scripted agent and records all events that the driver reports. */
import { fileURLToPath } from 'node:url';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { afterEach } from 'vitest';
import { compiledCode } from '../../../test/support/compiled-code.ts';
import { createApprovals } from '../src/approvals/approvals.ts';
import { startChildLink } from '../src/harness/child-link.ts';
import { type Driver, driveHarness } from '../src/harness/driver.ts';
import { harnessProfile } from '../src/harness/profile.ts';
import { imageLimits, type PromptImage } from '../src/images/images.ts';
import type { HarnessMcpServer } from '../src/mcp/servers.ts';
import { planGuard } from '../src/workspace/plan-guard.ts';
import { testFolder } from './agent.ts';

const fixture = fileURLToPath(new URL('./scripted-agent.mjs', import.meta.url));
let driver: Driver | undefined;
afterEach(async () => {
  await driver?.kill();
  driver = undefined;
});

export interface DriveOptions {
  command?: [string, ...string[]];
  approvalPolicy?: ApprovalPolicy;
  mcpServers?: readonly HarnessMcpServer[];
  startTimeoutMs?: number;
  ready?: () => Promise<void>;
  home?: string;
  /** True: the turns have the mode `plan`. */
  isPlan?: boolean;
  /** The prompt. Default: a sentence. */
  prompt?: string;
}

/**
 * Starts the ACP agent in `scripted-agent.mjs`. `mode` selects its behaviour. The process of this agent ends at the latest when the test
 * ends.
 */
export function drive(mode: string, options: DriveOptions = {}) {
  const cwd = testFolder();
  const emitted: AgentEventBody[] = [];
  const waiters: (() => void)[] = [];
  const emit = (event: AgentEventBody) => {
    emitted.push(event);
    for (const waiter of waiters) waiter();
  };
  const approvals = createApprovals({ emit, flush: async () => {} });
  approvals.begin({ policy: options.approvalPolicy }, undefined);
  const started = driveHarness({
    profile: harnessProfile({ harness: { type: 'acp' }, agent_config: {} }),
    start: (events) =>
      startChildLink({
        command: options.command ?? [process.execPath, fixture, mode],
        cwd,
        env: { PATH: process.env.PATH, HOME: options.home ?? cwd, RUNYARD_AGENT_SOCKET: cwd, ...compiledCode() },
        marker: `RUNYARD_AGENT_SOCKET=${cwd}`,
        events,
      }),
    emit,
    ready: options.ready ?? (() => Promise.resolve()),
    mcpServers: (options.mcpServers ?? []).map(({ name }) => name),
    mcp: { forHarness: options.mcpServers ?? [] },
    imageLimits: imageLimits(undefined),
    approvals,
    planGuard: planGuard(cwd, undefined),
    startTimeoutMs: options.startTimeoutMs ?? 20_000,
  });
  driver = started;
  const run = (images: readonly PromptImage[] = [], load?: string, isPlan = options.isPlan ?? false) =>
    started.run({
      cwd,
      isPlan,
      stepId: 'step',
      prompt: (loaded) => [{ type: 'text', text: loaded ? 'Go on.' : (options.prompt ?? 'Do it.') }],
      load,
      images,
      onStarted: async () => void emitted.push({ type: 'turn_started', step_id: 'step', prompt: 'Do it.' }),
      onEnded: () => emitted.push({ type: 'turn_finished', step_id: 'step' }),
    });
  const of = <T extends AgentEventBody['type']>(type: T) =>
    emitted.filter((event): event is Extract<AgentEventBody, { type: T }> => event.type === type);
  const text = () =>
    of('text')
      .map((event) => event.text)
      .join('');
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  return { driver: started, run, approvals, events: emitted, of, text, until };
}

/** The functions with which the cases start runs, send follow-ups and read results in a whole system with fake models. */

import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';
import type { Step as ConversationStep } from '@runyard/contract/runs/conversations';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { FakeGitHost } from '../../test/fakes/git-host.ts';
import type { FakeModels } from '../../test/fakes/models.ts';
import type { FakePull } from '../../test/fakes/pull-request-api.ts';
import type { System } from '../../test/support/system.ts';
import { promptOf, type Step } from './model-script.ts';

export interface Ground {
  readonly preset: HarnessPreset;
  readonly system: System;
  readonly models: FakeModels;
  readonly codeHost: FakeGitHost;
  /** The pull requests at the code host. */
  readonly pulls: readonly FakePull[];
}

/**
 * The models of the tests: the first one is the service's default for the provider and the model of most cases, and the second one is the
 * newest flagship. A program may treat new models differently, so change both when new models appear.
 */
export const testModels: Readonly<Record<HarnessPreset['type'], readonly [usual: string, newest: string]>> = {
  claude: ['anthropic/claude-sonnet-5-5', 'anthropic/claude-fable-5-2'],
  codex: ['openai/gpt-6.1-sol', 'openai/gpt-6-astra'],
  gemini: ['google/gemini-4-carbon', 'google/gemini-3.8-flash'],
  opencode: ['anthropic/claude-sonnet-5-5', 'anthropic/claude-fable-5-2'],
  qwen: ['local/fake-local', 'openai/gpt-6.1-sol'],
};

/** Allow much time for a turn, because programs start slowly on a loaded machine. */
const turnLimitMs = 90_000;

export interface RunOptions {
  readonly config?: object;
  readonly idleMinutes?: number;
  readonly [member: string]: unknown;
}

/** Starts a run in which the fake model takes these steps. */
export const begin = (ground: Ground, steps: readonly Step[], options: RunOptions = {}): Promise<string> =>
  beginWith(ground, promptOf(...steps), options);

/** Starts a run with this prompt. */
export async function beginWith({ preset, system }: Ground, prompt: string, options: RunOptions = {}): Promise<string> {
  const { config, idleMinutes = 0, ...more } = options;
  return await system.createRun(prompt, {
    ...more,
    config: {
      model_id: testModels[preset.type][0],
      idle_timeout_minutes: idleMinutes,
      harness: { type: preset.type },
      ...config,
    },
  });
}

export const untilEnded = ({ system }: Ground, id: string): Promise<RunItem> => system.untilEnded(id, turnLimitMs);

export const until = ({ system }: Ground, id: string, accept: (run: RunItem) => boolean): Promise<RunItem> =>
  system.until(id, accept, turnLimitMs);

export const followUp = (ground: Ground, id: string, ...steps: readonly Step[]): Promise<void> =>
  say(ground, id, promptOf(...steps));

/** Sends a follow-up with this text. */
export const say = async ({ system }: Ground, id: string, message: string): Promise<void> =>
  void (await system.call('POST', `/agent/runs/${id}/followups`, { message }));

export const stepsOf = async ({ system }: Ground, id: string): Promise<readonly ConversationStep[]> =>
  (await system.call<{ steps: ConversationStep[] }>('GET', `/agent/runs/${id}/conversation`)).steps;

/**
 * Waits for the end of a run. Throws if the run has not succeeded, or if the program denied an action by itself, which programs treat as
 * a success.
 */
export async function untilSucceeded(ground: Ground, id: string): Promise<RunItem> {
  const run = await untilEnded(ground, id);
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  const denied = /"state":"denied"|[^"]*(?:permission|auto mode)[^"]*\bdenied\b[^"]*|[^"]*denied by[^"]*/i.exec(
    await textOf(ground, id),
  );
  must(denied === null, `an action was denied: ${denied?.[0]}`);
  return run;
}

/** Returns the whole conversation as text. */
export const textOf = async (ground: Ground, id: string): Promise<string> =>
  JSON.stringify(await stepsOf(ground, id).catch(() => []));

export async function transcriptOf({ system }: Ground, id: string): Promise<string> {
  const url = `${system.baseUrl()}/api/v1/agent/runs/${id}/transcript`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${system.key}` } });
  return await answer.text();
}

/** Throws `what` if the condition is false. */
export function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

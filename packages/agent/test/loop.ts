/** Test support: runs the model loop against fake models, without an agent and a service. */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { afterAll, beforeEach } from 'vitest';
import { type FakeModels, fakeModelKeys, startFakeModels } from '../../../test/fakes/models.ts';
import { createApprovals } from '../src/approvals/approvals.ts';
import type { TurnImage } from '../src/harness/oz/conversation-images.ts';
import { type LoopOptions, modelEngine } from '../src/harness/oz/loop.ts';
import type { TurnVoice } from '../src/harness/oz/session.ts';
import { connectToService } from '../src/service/connection.ts';
import { testFolder } from './agent.ts';

/** A model of each protocol, and the key that its fake provider expects. */
export const providers: Record<string, { model: AgentModel; key: string }> = {
  anthropic: { model: agentModel('anthropic', 'claude-opus-5-5', '/v1'), key: fakeModelKeys.anthropic },
  'openai responses': { model: agentModel('openai-responses', 'gpt-5.5', '/v1'), key: fakeModelKeys.openai },
  google: { model: agentModel('google', 'gemini-3.8-flash', '/v1beta'), key: fakeModelKeys.google },
  'openai-compatible': { model: agentModel('openai-compatible', 'fake-local', '/local/v1'), key: fakeModelKeys.local },
};

function agentModel(protocol: AgentModel['protocol'], provider_model: string, gateway_path: string): AgentModel {
  return { id: `test/${provider_model}`, protocol, provider_model, gateway_path, vision_supported: false };
}

/** A loop that records its events. */
export type TestLoop = ReturnType<typeof engine>;

export interface TestLoops {
  readonly models: FakeModels;
  /** Returns the workspace of the current test. Each test has a new workspace. */
  workspace(): string;
  /**
   * Creates an engine that sends its requests directly to the fake provider. The engine uses a provider key as its run token, because
   * there is no gateway that would replace the token.
   */
  engine(provider?: string, options?: Partial<LoopOptions>, policy?: ApprovalPolicy): TestLoop;
}

/** Starts fake models for the tests of a file, and closes them after the tests. */
export async function openTestLoops(): Promise<TestLoops> {
  const models = await startFakeModels();
  afterAll(() => models.close());
  let workspace = '';
  beforeEach(() => {
    workspace = testFolder();
  });
  return {
    models,
    workspace: () => workspace,
    engine: (provider, options, policy) => engine(models, workspace, provider, options, policy),
  };
}

function engine(
  models: FakeModels,
  workspace: string,
  provider = 'anthropic',
  options: Partial<LoopOptions> = {},
  policy?: ApprovalPolicy,
) {
  const found = providers[provider];
  if (found === undefined) throw new Error(`no provider ${provider}`);
  const spoken: SessionUpdate[] = [];
  const texts: string[] = [];
  const thoughts: string[] = [];
  const waiters: (() => void)[] = [];
  const heard = () => {
    for (const waiter of waiters) waiter();
  };
  const voice: TurnVoice = {
    say: async (text) => {
      texts.push(text);
      heard();
    },
    think: async (text) => {
      thoughts.push(text);
      heard();
    },
    update: async (update) => {
      spoken.push(update);
      heard();
    },
  };
  const decided: AgentEventBody[] = [];
  const approvals = createApprovals({
    emit: (event) => {
      decided.push(event);
      heard();
    },
    flush: async () => {},
  });
  approvals.begin({ policy }, undefined);
  const play = modelEngine({
    approvals,
    model: found.model,
    workspace,
    env: { PATH: process.env.PATH },
    backpressure: () => undefined,
    connection: connectToService({ serverRoot: models.url, token: found.key }),
    reportArtifact: async () => ({ ok: true, artifact_uid: 'artifact-1' }),
    handoff: async (paths) => ({ ok: true, files: [...paths] }),
    retry: { tries: 3, firstMs: 1, maxMs: 5 },
    stallTimeoutMs: 60_000,
    ...options,
  });
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  let stop = new AbortController();
  /** Runs a turn. `answer` is a text before the prompt: the decision about a request of an earlier sandbox. */
  const turn = (
    prompt: string,
    images: TurnImage[] = [],
    files: string[] = [],
    { answer = '', isPlan = false }: { answer?: string; isPlan?: boolean } = {},
  ) => {
    stop = new AbortController();
    return play({ prompt, isPlan, promptWithAnswer: answer + prompt, files, images, voice, signal: stop.signal });
  };
  return { turn, approvals, decided, spoken, texts, thoughts, abort: () => stop.abort(), until };
}

/** Returns the states of all actions, in order. */
export const results = (spoken: SessionUpdate[]) =>
  spoken.flatMap((update) => (update.sessionUpdate === 'tool_call_update' && update.status ? [update.status] : []));

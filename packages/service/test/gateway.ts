/** Test support: a gateway on a free port, which sends the requests to a fake provider. */
import type { AddressInfo } from 'node:net';
import { parseSettings } from '@runyard/contract/settings/settings';
import Fastify from 'fastify';
import { type FakeModels, fakeModelKeys, startFakeModels } from '../../../test/fakes/models.ts';
import { registerGateway } from '../src/edges/gateway/models/gateway.ts';
import type { GatewayDeps } from '../src/edges/gateway/models/handle-request.ts';
import { type Models, openModels } from '../src/team/models/models.ts';
import type { ModelUsage } from '../src/team/usage/model-usage.ts';

export interface TestGateway {
  readonly url: string;
  readonly fake: FakeModels;
  readonly models: Models;
  readonly usages: readonly ModelUsage[];
  /** The log, as text. */
  log(): string;
  /** Waits for usage record number `count` (1, 2, …) and returns it. */
  usage(count: number): Promise<ModelUsage>;
  /** Returns the number of connected clients. */
  clients(): Promise<number>;
  /** Makes a run token whose run may use the model. */
  token(modelId: string): string;
  close(): Promise<void>;
}

/** All API keys of the operator for providers. Answers of the gateway must not contain them. */
export const secrets: readonly string[] = Object.values(fakeModelKeys);

const creator = { kind: 'user', uid: 'user' } as const;

export async function startTestGateway(
  changes: Partial<GatewayDeps> & { env?: Record<string, string> } = {},
): Promise<TestGateway> {
  const fake = await startFakeModels();
  const { env, ...deps } = changes;
  const parsed = parseSettings({ ...fake.env, ...env });
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const opened = await openModels(parsed.settings);
  if (!opened.ok) throw new Error(opened.problems.join('; '));
  const usages: ModelUsage[] = [];
  const waiting: (() => void)[] = [];
  const lines: string[] = [];
  const write = (fields: object, message: string): void => {
    lines.push(
      JSON.stringify([message, fields], (_key, value) => (value instanceof Error ? String(value.stack) : value)),
    );
  };
  const app = Fastify({ forceCloseConnections: true });
  await registerGateway(app, {
    models: opened.models,
    authenticateRunToken: async (token) => {
      const modelId = token.startsWith('run-token-of-') ? token.slice(13) : undefined;
      return modelId === undefined
        ? null
        : {
            runId: `run of ${modelId}`,
            executionId: 'execution',
            teamId: 'team',
            modelId,
            ancestorIds: [],
            creator,
            executor: creator,
            environmentId: null,
            automationUid: null,
            factoryUid: null,
          };
    },
    recordUsage: async (usage) => {
      usages.push(usage);
      for (const wake of waiting.splice(0)) wake();
    },
    log: { info: write, warn: write, error: write },
    ...deps,
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    fake,
    models: opened.models,
    usages,
    log: () => lines.join('\n'),
    usage: async (count) => {
      for (;;) {
        const usage = usages[count - 1];
        if (usage !== undefined) return usage;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    clients: () =>
      new Promise((resolve, reject) => {
        app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
    token: (modelId) => `run-token-of-${modelId}`,
    close: async () => {
      await app.close();
      await fake.close();
    },
  };
}

import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { LanguageModel } from 'ai';
import type { ServiceConnection } from '../../service/connection.ts';
import { modelFetch } from '../../service/model-fetch.ts';
import { withUsualChunks } from './usual-chunks.ts';

type ProviderOptions = NonNullable<Parameters<typeof import('ai').streamText>[0]['providerOptions']>;

export interface ModelAccess {
  model: LanguageModel;
  providerOptions: ProviderOptions;
}

/** Opens the run's model through the gateway. Loads only the module of the model's provider. */
export async function openModel(
  model: AgentModel,
  options: { connection: ServiceConnection; reasoningLevel?: string | undefined; stallTimeoutMs: number },
): Promise<ModelAccess> {
  const settings = {
    baseURL: options.connection.serverRoot + model.gateway_path,
    apiKey: options.connection.token,
    fetch: modelFetch(options.connection, options.stallTimeoutMs),
  };
  const level = options.reasoningLevel;
  switch (model.protocol) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return {
        model: createAnthropic(settings)(model.provider_model),
        // With this setting, the provider reads the earlier conversation from its cache, at about a tenth of the price of new input.
        providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' }, ...(level ? { effort: level } : {}) } },
      };
    }
    case 'openai-responses': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return {
        model: createOpenAI(settings).responses(model.provider_model),
        // The provider stores no conversation, so each request must include the encrypted reasoning of earlier answers.
        providerOptions: {
          openai: {
            store: false,
            include: ['reasoning.encrypted_content'],
            ...(level ? { reasoningEffort: level } : {}),
          },
        },
      };
    }
    case 'google': {
      const { createGoogle } = await import('@ai-sdk/google');
      return {
        model: createGoogle(settings)(model.provider_model),
        providerOptions: level ? { google: { thinkingConfig: { thinkingLevel: level } } } : {},
      };
    }
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const provider = createOpenAICompatible({
        ...settings,
        fetch: withUsualChunks(settings.fetch),
        name: 'local',
        includeUsage: true,
      });
      return {
        model: provider(model.provider_model),
        providerOptions: level ? { local: { reasoningEffort: level } } : {},
      };
    }
  }
}

import type { HarnessPreset, PresetConfiguration } from './preset.ts';

/** `npm` is the package of the provider's client, which is part of opencode. */
const provider = (npm: string, path: string): PresetConfiguration => ({
  jsonVariables: {
    OPENCODE_CONFIG_CONTENT: {
      provider: {
        runyard: {
          name: 'Runyard',
          npm,
          options: { baseURL: `{forwarder}/${path}`, apiKey: '{key}' },
          // Without these members, opencode silently removes images from requests.
          models: {
            '{model}': {
              name: '{model}',
              attachment: true,
              modalities: { input: ['text', 'image'], output: ['text'] },
            },
          },
        },
      },
      enabled_providers: ['runyard'],
      model: 'runyard/{model}',
      small_model: 'runyard/{model}',
      // Name AGENTS.md here, because opencode does not look for this file while it ignores the configuration of the project.
      instructions: ['{folder}/AGENTS.md'],
      autoupdate: false,
      share: 'disabled',
    },
  },
});

/**
 * Allows every tool, even those that opencode asks about by default. opencode reads this file before all other configuration files, so they
 * can still deny tools.
 */
const approves: PresetConfiguration = {
  files: [
    {
      path: '.config/opencode/config.json',
      format: 'json',
      content: { permission: { '*': 'allow' } },
      keepsMembers: true,
    },
  ],
};

const asks: PresetConfiguration = {
  // The workspace's configuration is ignored, because it could allow every tool.
  variables: { OPENCODE_DISABLE_PROJECT_CONFIG: '1' },
  jsonVariables: { OPENCODE_PERMISSION: { bash: 'ask', edit: 'ask', webfetch: 'ask', external_directory: 'ask' } },
};

/**
 * Hosts that opencode reaches without the proxy. The npm registry is one of these hosts, because opencode requests packages from the
 * registry when it starts. A turn took 65 s if the proxy refused the registry, and 13 s without a proxy (each measured once, at different
 * load).
 */
const direct = '127.0.0.1,127.0.0.0/8,0.0.0.0,localhost,.localhost,sandbox,::1,[::1],registry.npmjs.org';

/** opencode. Settings: opencode.ai/docs/config and opencode.ai/docs/permissions. */
export const opencode: HarnessPreset = {
  type: 'opencode',
  title: 'opencode',
  program: { package: 'opencode-ai', version: '1.18.33', leastVersion: '1.15.0', command: 'opencode' },
  leastMemoryMb: 1536,
  configuration: {
    args: ['acp'],
    variables: {
      NO_PROXY: direct,
      no_proxy: direct,
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    },
  },
  speaks: {
    anthropic: provider('@ai-sdk/anthropic', 'anthropic/v1'),
    'openai-responses': provider('@ai-sdk/openai', 'openai/v1'),
    google: provider('@ai-sdk/google', 'google/v1beta'),
    'openai-compatible': provider('@ai-sdk/openai-compatible', 'local/v1'),
  },
  approvals: { 'auto-approve': approves, ask: asks, 'auto-deny': asks },
  // In version 1.18, a turn fails if a linked file has a type that the provider's client does not know, such as JavaScript.
  embedsLinkedFiles: true,
  differences: ['A command that fails is reported as completed; its exit code is in the action.'],
};

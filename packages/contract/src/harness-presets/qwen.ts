import type { HarnessPreset, PresetConfiguration } from './preset.ts';

const settings = (approvalMode: string): PresetConfiguration => ({
  files: [
    {
      path: '.qwen/settings.json',
      format: 'json',
      content: {
        security: { auth: { selectedType: 'openai' } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
        tools: { approvalMode },
      },
    },
  ],
});

const chat = (path: string): PresetConfiguration => ({
  variables: { OPENAI_API_KEY: '{key}', OPENAI_BASE_URL: `{forwarder}/${path}`, OPENAI_MODEL: '{model}' },
});

/** Qwen Code. Settings: qwenlm.github.io/qwen-code-docs. */
export const qwen: HarnessPreset = {
  type: 'qwen',
  title: 'Qwen Code',
  program: {
    package: '@qwen-code/qwen-code',
    version: '0.24.4',
    leastVersion: '0.20.0',
    command: 'qwen',
  },
  leastMemoryMb: 4096,
  configuration: { args: ['--acp'] },
  speaks: { 'openai-responses': chat('openai/v1'), 'openai-compatible': chat('local/v1') },
  approvals: { 'auto-approve': settings('default'), ask: settings('default'), 'auto-deny': settings('default') },
  differences: [
    'It needs 4 GB of memory after it has written a file.',
    'It wraps the output of commands in text of its own.',
  ],
};

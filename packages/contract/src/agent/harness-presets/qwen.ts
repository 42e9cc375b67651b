import type { HarnessPreset, PresetConfiguration } from './preset.ts';

const settings = (more: Readonly<Record<string, unknown>> = {}): PresetConfiguration => ({
  files: [
    {
      path: '.qwen/settings.json',
      format: 'json',
      content: {
        security: { auth: { selectedType: 'openai' } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
        // Without this setting, qwen silently removes images from requests to models whose names it does not know.
        model: { generationConfig: { modalities: { image: true } } },
        ...more,
      },
    },
  ],
});

const approves: PresetConfiguration = { ...settings(), args: ['--approval-mode', 'yolo'] };

// Without the rule, Qwen Code does not ask before commands that it considers read-only. The rule and the argument are used because
// they have priority over the settings in the workspace, which could allow every tool.
const asks: PresetConfiguration = {
  ...settings({ permissions: { ask: ['run_shell_command', 'write_file', 'edit'] } }),
  args: ['--approval-mode', 'default'],
};

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
  // Without this variable, a turn begins while MCP servers are still starting, and their tools are missing.
  configuration: { args: ['--acp'], variables: { QWEN_CODE_LEGACY_MCP_BLOCKING: '1' } },
  speaks: { 'openai-responses': chat('openai/v1'), 'openai-compatible': chat('local/v1') },
  approvals: { 'auto-approve': approves, ask: asks, 'auto-deny': asks },
  differences: [
    'It needs 4 GB of memory after it has written a file.',
    'It wraps the output of commands in its own text.',
  ],
};

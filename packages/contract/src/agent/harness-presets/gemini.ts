import type { HarnessPreset, PresetConfiguration } from './preset.ts';

const settings: PresetConfiguration = {
  files: [
    {
      path: '.gemini/settings.json',
      format: 'json',
      content: {
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      },
    },
  ],
};

// Arguments are used here, because they have priority over the settings in the workspace. Those settings could allow every tool, or only plan.
const approves: PresetConfiguration = { ...settings, args: ['--approval-mode', 'yolo'] };
const asks: PresetConfiguration = {
  ...settings,
  args: ['--approval-mode', 'default', '--allowed-tools', 'none'],
};

/** Gemini CLI. Settings: geminicli.com/docs/reference/configuration. */
export const gemini: HarnessPreset = {
  type: 'gemini',
  title: 'Gemini CLI',
  program: { package: '@google/gemini-cli', version: '0.61.0', leastVersion: '0.50.0', command: 'gemini' },
  leastMemoryMb: 1024,
  configuration: {
    // Without this variable, Gemini CLI restarts itself with a heap limit of half the machine's memory.
    variables: { GEMINI_CLI_NO_RELAUNCH: 'true', GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    args: ['--acp'],
  },
  speaks: {
    google: {
      variables: { GEMINI_API_KEY: '{key}', GOOGLE_GEMINI_BASE_URL: '{forwarder}/google', GEMINI_MODEL: '{model}' },
      args: ['--model', '{model}'],
    },
  },
  approvals: { 'auto-approve': approves, ask: asks, 'auto-deny': asks },
  embedsLinkedFiles: true,
  renames: [
    {
      model: /^gemini-(3\.5-flash|3-flash|3-flash-preview|3\.1-flash-lite|3-pro-preview)$/,
      reason: 'Gemini CLI asks the provider for a newer model of this family instead, which the run may not use',
    },
  ],
  differences: [
    'It reports no output of commands that print only errors, and reports commands that it blocked itself as completed.',
    'It refuses commands with a command substitution, such as $(…), and tells its model the reason.',
    'It gives the whole output of a command to its model: the turn fails if the output is larger than the model accepts.',
    'It cannot load an earlier session: a continuation gets the conversation as text.',
  ],
};

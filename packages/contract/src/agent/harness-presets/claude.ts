import type { HarnessPreset, PresetConfiguration } from './preset.ts';

/**
 * Configures the permission mode. Claude Code starts in its own auto mode if no mode is set. In that mode, it asks a model of its own before
 * each command, and denies the command if it gets no answer. So auto mode is off under each policy.
 */
const permissions = (more: Readonly<Record<string, unknown>>) =>
  ({
    path: '.claude/settings.json',
    format: 'json',
    content: { permissions: { disableAutoMode: 'disable', ...more } },
  }) as const;

// Claude Code refuses this mode for root, unless this variable says that it runs in a sandbox.
const approves: PresetConfiguration = {
  files: [{ ...permissions({ defaultMode: 'bypassPermissions' }), keepsMembers: true }],
  variables: { IS_SANDBOX: '1' },
};

/** Without these rules, Claude Code does not ask before commands that only read. */
const asks: PresetConfiguration = {
  files: [permissions({ defaultMode: 'default', ask: ['Bash', 'Edit', 'Write', 'NotebookEdit'] })],
};

/** Claude Code, through its ACP adapter. Variables: code.claude.com/docs/en/settings and docs/en/model-config. */
export const claude: HarnessPreset = {
  type: 'claude',
  alias: 'claude-code',
  title: 'Claude Code',
  program: {
    package: '@agentclientprotocol/claude-agent-acp',
    version: '0.101.0',
    leastVersion: '0.90.0',
    command: 'claude-agent-acp',
  },
  leastMemoryMb: 768,
  configuration: {
    variables: {
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
    },
  },
  speaks: {
    anthropic: {
      variables: {
        ANTHROPIC_BASE_URL: '{forwarder}/anthropic',
        ANTHROPIC_AUTH_TOKEN: '{key}',
        ANTHROPIC_MODEL: '{model}',
        ANTHROPIC_SMALL_FAST_MODEL: '{model}',
        ANTHROPIC_DEFAULT_HAIKU_MODEL: '{model}',
        ANTHROPIC_DEFAULT_SONNET_MODEL: '{model}',
        ANTHROPIC_DEFAULT_OPUS_MODEL: '{model}',
        CLAUDE_CODE_SUBAGENT_MODEL: '{model}',
        ANTHROPIC_CUSTOM_MODEL_OPTION: '{model}',
      },
    },
  },
  approvals: { 'auto-approve': approves, ask: asks, 'auto-deny': asks },
  usageCounters: 'CLAUDE_CODE',
  differences: ['It writes the exit code of a failing command before its output.'],
};

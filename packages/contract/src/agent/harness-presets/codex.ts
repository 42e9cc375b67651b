import type { HarnessPreset, PresetConfiguration } from './preset.ts';

// Tried with 0.166: the policy `untrusted` was removed, and in the modes with Codex's own sandbox, a command that this sandbox cannot start
// fails without a question.
const neverAsks =
  'codex cannot ask a person in the only mode that works inside a sandbox; use auto-approve, approval_rules about pushes and hosts only, or another harness';

/** `segment` is the part of the forwarder's path that names the provider. */
const responses = (segment: string): PresetConfiguration => ({
  variables: { RUNYARD_MODEL_KEY: '{key}' },
  files: [
    {
      path: '.codex/config.toml',
      format: 'toml',
      content: {
        model: '{model}',
        review_model: '{model}',
        model_provider: 'runyard',
        check_for_update_on_startup: false,
        // Web search is off, because the provider would run this tool, and the gateway refuses requests with the tool if the
        // environment does not allow it.
        web_search: 'disabled',
        // With 0, Codex waits up to 30 s for each MCP server before it begins a turn. By default, it begins the turn after 1 s, and
        // the tools of servers that are still starting are missing.
        mcp_optional_startup_grace_ms: 0,
        model_providers: {
          runyard: {
            name: 'Runyard',
            base_url: `{forwarder}/${segment}/v1`,
            env_key: 'RUNYARD_MODEL_KEY',
            wire_api: 'responses',
            supports_websockets: false,
          },
        },
        analytics: { enabled: false },
      },
    },
  ],
});

/** Codex, through its ACP adapter. Settings: developers.openai.com/codex/config-reference. */
export const codex: HarnessPreset = {
  type: 'codex',
  title: 'Codex',
  program: {
    package: '@agentclientprotocol/codex-acp',
    version: '2.6.0',
    leastVersion: '2.0.0',
    command: 'codex-acp',
  },
  leastMemoryMb: 512,
  // In this mode, Codex does not ask, and its own sandbox is off. Codex's sandbox uses the program bubblewrap, which cannot start a second
  // time inside Runyard's sandbox.
  configuration: { variables: { INITIAL_AGENT_MODE: 'agent-full-access', NO_BROWSER: '1' } },
  speaks: { 'openai-responses': responses('openai'), 'openai-compatible': responses('local') },
  // Codex asks this model for titles of sessions, which Runyard does not show.
  sideModels: ['gpt-5.6-luna'],
  approvals: { 'auto-approve': {}, ask: neverAsks, 'auto-deny': neverAsks },
  usageCounters: 'CODEX',
  differences: [
    'It writes a warning into the conversation if it has no data about the model ("Model metadata … not found").',
    'An endpoint of your own must offer the Responses API.',
  ],
};

import type { HarnessPreset, PresetConfiguration } from './preset.ts';

// In this mode, Codex does not ask, and its own sandbox is off. Codex's sandbox uses the program bubblewrap, which cannot start a second
// time inside Runyard's sandbox.
const fullAccess: PresetConfiguration = { variables: { INITIAL_AGENT_MODE: 'agent-full-access' } };

/**
 * A stand-in for bubblewrap, which Codex starts for each command and each change of a file. Codex uses it because its help names the options
 * that Codex needs. It starts nothing, so Codex asks whether the command may run without bubblewrap. Without the stand-in, Codex starts
 * its own bubblewrap, which cannot start inside Runyard's sandbox, and Codex does not ask after this failure.
 */
const refusingBubblewrap = `#!/bin/sh
case "$*" in
  --help) echo '  --argv0 VALUE
  --perms OCTAL
  --bind-fd FD DEST
  --ro-bind-fd FD DEST
  --as-pid-1' ;;
  *)
    echo 'bwrap: Operation not permitted' >&2
    exit 1
    ;;
esac
`;

/**
 * Starts Codex for the adapter, which says that Codex shall trust the settings of the project. They could allow every command. The pattern
 * matches no text of a prompt, because quotation marks in a text of JSON have a backslash. Codex does not read the AGENTS.md of a project that
 * it does not trust, so the file becomes the user's AGENTS.md.
 */
const untrustingCodex = `#!/bin/sh
adapter=$(tr '\\0' '\\n' </proc/$PPID/cmdline | sed -n 2p)
find='require("module").createRequire(require("fs").realpathSync(process.argv[1])).resolve("@openai/codex/bin/codex.js")'
codex=$(/proc/$PPID/exe -p "$find" "$adapter") || exit
[ ! -f AGENTS.md ] || [ -e ~/.codex/AGENTS.md ] || ln -s "$PWD/AGENTS.md" ~/.codex/AGENTS.md
sed -u 's/"trust_level" *: *"trusted"/"trust_level":"untrusted"/g' | exec /proc/$PPID/exe "$codex" "$@"
`;

const profile = 'runyard';

/**
 * Codex asks before each command and each change of a file. The policy on-request would not ask after a refusal of the sandbox. Each kind
 * of question must be on, because Codex denies actions whose kind is off.
 */
const asks: PresetConfiguration = {
  variables: { INITIAL_AGENT_MODE: `permission-profile:${profile}`, CODEX_PATH: '{home}/.codex/asks/codex' },
  files: [
    {
      path: '.codex/config.toml',
      format: 'toml',
      content: {
        approval_policy: {
          granular: {
            sandbox_approval: true,
            rules: true,
            mcp_elicitations: true,
            request_permissions: true,
            skill_approval: true,
          },
        },
        projects: { '{folder}': { trust_level: 'untrusted' } },
        default_permissions: profile,
        // Codex tells its model that files can only be read.
        developer_instructions:
          'Run commands and change files as the task needs, although the sandbox permits only reading: each action that the sandbox refuses is put to a person, and runs without the sandbox if the person approves it. After a denial, find another way, or end if there is none.',
        permissions: { [profile]: { filesystem: { ':root': 'read' }, network: { enabled: true } } },
      },
    },
    { path: '.codex/asks/bwrap', format: 'script', content: refusingBubblewrap },
    { path: '.codex/asks/codex', format: 'script', content: untrustingCodex },
  ],
  programs: '.codex/asks',
};

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
    leastVersion: '2.6.0',
    command: 'codex-acp',
  },
  leastMemoryMb: 512,
  configuration: { variables: { NO_BROWSER: '1' } },
  speaks: { 'openai-responses': responses('openai'), 'openai-compatible': responses('local') },
  // Codex asks this model for titles of sessions, which Runyard does not show.
  sideModels: ['gpt-5.6-luna'],
  approvals: { 'auto-approve': fullAccess, ask: asks, 'auto-deny': asks },
  usageCounters: 'CODEX',
  differences: [
    'It writes a warning into the conversation if it has no data about the model ("Model metadata … not found").',
    'An endpoint of your own must offer the Responses API.',
  ],
};

/** The kinds of harnesses and their capabilities. All other code checks a capability and never the name of a harness. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';

/**
 * `runbook` and `model-loop` are the two engines of the built-in harness; `external` is any other ACP agent; `command` is any program
 * that reads the prompt from standard input.
 */
export type HarnessKind = 'runbook' | 'model-loop' | 'external' | 'command';

export interface HarnessCapabilities {
  /**
   * The harness runs in a separate process. This process takes time to start, must not find the run token in the environment of
   * another process, and is killed if it does not end a turn.
   */
  readonly ownProcess: boolean;
  /** A model reads the prompt. So the agent may add text for the model: the mode, and the record of the conversation. */
  readonly readsAdvice: boolean;
  /** The harness gets the base prompt and the text about other runs separately from the prompt. */
  readonly ownInstructions: boolean;
  /** The harness can continue the same action about which a person decided in an earlier sandbox. */
  readonly continuesDecidedActions: boolean;
  /**
   * The caller of the run's MCP servers. `unused`: no program calls them. `agent`: the agent calls them for the harness. `harness`: the
   * harness calls them itself, and gets the list of servers over ACP.
   */
  readonly mcpServers: 'unused' | 'agent' | 'harness';
  /** The agent asks the harness to load an earlier session if the harness announces this capability in ACP. */
  readonly loadsSessions: boolean;
  /** The harness accepts links to files and lets its model read the linked files. */
  readonly takesFileLinks: boolean;
  /** The harness reads a prompt that begins with a slash or a dollar sign as its own command, and does not send it to the model. */
  readonly hasCommands: boolean;
  /** The harness's answer to a prompt may say that the turn failed (`BuiltinVerdict`). */
  readonly trustedVerdict: boolean;
}

export interface HarnessProfile {
  readonly kind: HarnessKind;
  /** Name of the harness in events and messages. */
  readonly name: string;
  /** Model of the harness in events. */
  readonly modelId: string;
  readonly capabilities: HarnessCapabilities;
}

const builtin: HarnessCapabilities = {
  ownProcess: false,
  readsAdvice: true,
  ownInstructions: true,
  continuesDecidedActions: true,
  mcpServers: 'agent',
  loadsSessions: false,
  takesFileLinks: true,
  hasCommands: false,
  trustedVerdict: true,
};

const capabilitiesOf: Readonly<Record<HarnessKind, HarnessCapabilities>> = {
  // The runbook runs only the commands of its prompt and ignores all other text.
  runbook: { ...builtin, readsAdvice: false, mcpServers: 'unused' },
  'model-loop': builtin,
  external: {
    ownProcess: true,
    readsAdvice: true,
    ownInstructions: false,
    continuesDecidedActions: false,
    mcpServers: 'harness',
    loadsSessions: true,
    takesFileLinks: true,
    hasCommands: true,
    trustedVerdict: false,
  },
  command: {
    ownProcess: true,
    readsAdvice: false,
    ownInstructions: false,
    continuesDecidedActions: false,
    mcpServers: 'unused',
    loadsSessions: false,
    takesFileLinks: true,
    hasCommands: false,
    // The program cannot set the verdict: the agent computes it from the exit code.
    trustedVerdict: true,
  },
};

function kindOf(type: string, hasModel: boolean): HarnessKind {
  const harness = findHarness(type);
  if (harness?.isBuiltIn) return hasModel ? 'model-loop' : 'runbook';
  return harness?.hasOnlyRawOutput ? 'command' : 'external';
}

/** The part of a task that names the harness of the run. */
export type HarnessOfTask = Pick<AgentTask, 'harness' | 'agent_config'>;

export function harnessProfile({ harness, agent_config }: HarnessOfTask): HarnessProfile {
  const { type, model } = harness;
  const ownModel = findHarness(type)?.isBuiltIn ? 'runbook' : (agent_config.model_id ?? type);
  const kind = kindOf(type, model !== undefined);
  const capabilities = capabilitiesOf[kind];
  return {
    kind,
    name: type,
    modelId: model?.id ?? ownModel,
    capabilities: findHarness(type)?.embedsLinkedFiles ? { ...capabilities, takesFileLinks: false } : capabilities,
  };
}

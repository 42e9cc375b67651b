/** The kinds of harness and what each of them can do. All other files ask for a capability, never for the name of a harness. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';

/**
 * `runbook` and `model-loop` are the two engines of the built-in harness `oz`; `external` is any other ACP agent; `command` is any program
 * that reads the prompt from standard input.
 */
export type HarnessKind = 'runbook' | 'model-loop' | 'external' | 'command';

export interface HarnessCapabilities {
  /**
   * The harness is a process of its own. Its start takes time, it could read the run token in the environment of another process,
   * and it is killed if it does not end a turn.
   */
  readonly ownProcess: boolean;
  /** A model reads the prompt, so text for the model may be added to it: the mode, the record of the conversation. */
  readonly readsAdvice: boolean;
  /** The harness gets the base prompt and the text about other runs apart from the prompt. */
  readonly ownInstructions: boolean;
  /** The harness continues the very action that a person decided about in an earlier sandbox. */
  readonly continuesDecidedActions: boolean;
  /** The user of the run's MCP servers: the agent on behalf of the harness, or the harness itself, which gets them by ACP. */
  readonly mcpServers: 'unused' | 'agent' | 'harness';
  /** The harness may load an earlier session, if it announces so in ACP. */
  readonly loadsSessions: boolean;
  /** The harness accepts links to files and lets its model read them. */
  readonly takesFileLinks: boolean;
  /** The harness takes a prompt that begins with a slash or a dollar sign for a command of its own, which no model sees. */
  readonly hasCommands: boolean;
  /** The harness may say in its answer to a prompt that the turn failed (`BuiltinVerdict`). */
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
  // The runbook runs the commands of its prompt and reads nothing else.
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
    // The verdict comes from the link, which knows the exit code, not from the program.
    trustedVerdict: true,
  },
};

/** Types of `config.harness` that mean the built-in harness. */
const builtinTypes: ReadonlySet<string> = new Set(['oz', 'builtin', '']);

/**
 * Programs that put the content of linked files into their request, whatever its size; opencode 1.18 fails for types that its client of
 * the provider does not know, such as JavaScript.
 */
const embedsLinkedFiles: ReadonlySet<string> = new Set(['gemini', 'opencode']);

function kindOf(type: string, hasModel: boolean): HarnessKind {
  if (builtinTypes.has(type)) return hasModel ? 'model-loop' : 'runbook';
  return type === 'command' ? 'command' : 'external';
}

/** The part of a task that names its harness. */
export type HarnessOfTask = Pick<AgentTask, 'harness' | 'agent_config'>;

/** Returns the profile of the harness that a task asks for. */
export function harnessProfile({ harness, agent_config }: HarnessOfTask): HarnessProfile {
  const { type, model } = harness;
  const isBuiltin = builtinTypes.has(type);
  const own = isBuiltin ? 'runbook' : (agent_config.model_id ?? type);
  const kind = kindOf(type, model !== undefined);
  return {
    kind,
    name: isBuiltin ? 'oz' : type,
    modelId: model?.id ?? own,
    capabilities: embedsLinkedFiles.has(type)
      ? { ...capabilitiesOf[kind], takesFileLinks: false }
      : capabilitiesOf[kind],
  };
}

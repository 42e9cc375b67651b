import type { ApprovalPolicy } from '../../runs/approvals.ts';
import type { HarnessUsage } from '../../runs/harness-usage.ts';
import type { AgentModel } from '../agent-protocol.ts';

/** Kinds of `config.harness` that are presets. A preset describes a program that users install, and how Runyard configures this program. */
export const presetTypes = ['claude', 'codex', 'gemini', 'opencode', 'qwen'] as const;
export type PresetType = (typeof presetTypes)[number];

/** Wire protocol of the run's model. */
export type PresetProtocol = AgentModel['protocol'];

/** A file in the home of the run. */
export type PresetFile = PresetSettings | PresetScript;

/** A file of JSON or TOML. If several parts of a preset have a file at the same path, the file has the members of all. */
interface PresetSettings {
  /** Path below `HOME`. */
  readonly path: string;
  readonly format: 'json' | 'toml';
  readonly content: Readonly<Record<string, unknown>>;
  /** True: if the setup has written a JSON file at this path, its other members stay. Otherwise the file is replaced. */
  readonly keepsMembers?: true;
}

/** An executable script, which begins with `#!`. */
interface PresetScript {
  /** Path below `HOME`. */
  readonly path: string;
  readonly format: 'script';
  readonly content: string;
}

/**
 * Variables and files that configure a program. In their texts, a name in braces such as `{model}` stands for the member of `PresetValues`
 * with this name.
 */
export interface PresetConfiguration {
  readonly variables?: Readonly<Record<string, string>>;
  /** Variables whose value is JSON. */
  readonly jsonVariables?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly files?: readonly PresetFile[];
  readonly args?: readonly string[];
  /** Folder below `HOME` in which the program looks for other programs first. */
  readonly programs?: string;
}

/** The values that replace names in braces in the texts of a preset. */
export interface PresetValues {
  /** `http://127.0.0.1:PORT`: the address of the agent's forwarder, which forwards requests to the gateway. */
  readonly forwarder: string;
  /** Key that only the forwarder accepts. */
  readonly key: string;
  /** The provider's own name of the run's model. */
  readonly model: string;
  /** The folder in which the program works. */
  readonly folder: string;
  /** The run's home folder. */
  readonly home: string;
}

/**
 * Capabilities of a harness. Code that is not part of a preset or of the built-in harness checks these capabilities and never the name of a
 * harness.
 */
export interface HarnessCapabilities {
  /**
   * True: the agent itself is the harness, without another program. It calls models of every protocol, executes a runbook if the run has no
   * model, and writes no transcript besides the conversation.
   */
  readonly isBuiltIn?: true;
  /** For each `approval_policy`: the configuration for this policy, or a sentence that says why the harness cannot follow the policy. */
  readonly approvals: Readonly<Record<ApprovalPolicy, PresetConfiguration | string>>;
  /**
   * A description of the command that a run must give in `config.harness.command`, for error messages. The program of this command may
   * choose its own model. Absent if a run needs no command.
   */
  readonly neededCommand?: string;
  /** True: the program gets the prompt on standard input, and its output is not parsed. So runs with this harness have no conversation. */
  readonly hasOnlyRawOutput?: true;
  /** True: if a prompt has links to files, the program sends the whole files to its model, even large files. */
  readonly embedsLinkedFiles?: true;
  /** Format of the token counters that the program reports. Absent: `harness-usage` is not available for runs with this program. */
  readonly usageCounters?: NonNullable<HarnessUsage['usage']>['harness'];
}

/**
 * A program that Runyard configures and drives over the Agent Client Protocol. A preset contains only data, because one client of this
 * protocol drives all programs.
 */
export interface HarnessPreset extends HarnessCapabilities {
  readonly type: PresetType;
  /** Another name of this kind of harness in definition files. */
  readonly alias?: string;
  /** Name of the program as people know it. */
  readonly title: string;
  readonly program: {
    /** Package on the npm registry. */
    readonly package: string;
    /** The version that `bin/test-harnesses` tests and the installation command installs. */
    readonly version: string;
    /** The oldest version that works with `configuration`. */
    readonly leastVersion: string;
    /** Name of the command. */
    readonly command: string;
    /**
     * True: the package works only after its install script has run, and npm runs install scripts only for packages that are allowed
     * explicitly.
     */
    readonly needsInstallScript?: true;
  };
  /** Memory that a short turn needs, in MB. The worker does not start the program in a sandbox with less memory. */
  readonly leastMemoryMb: number;
  /** Configuration that applies to all models. */
  readonly configuration: PresetConfiguration;
  /** Model protocols that the program speaks, each with the configuration for this protocol. */
  readonly speaks: Readonly<Partial<Record<PresetProtocol, PresetConfiguration>>>;
  /** Further models that the program requests and the gateway refuses. Turns succeed without these models. */
  readonly sideModels?: readonly string[];
  /** Models that a run cannot use with this program, each with the reason: the program asks the provider for another model instead. */
  readonly renames?: readonly { readonly model: RegExp; readonly reason: string }[];
  /** Differences from other harnesses that a user notices. */
  readonly differences: readonly string[];
}

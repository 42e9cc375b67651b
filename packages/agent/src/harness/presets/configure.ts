import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { HarnessPreset, PresetConfiguration, PresetValues } from '@runyard/contract/agent/harness-presets/preset';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';

/** A table in TOML. Presets use texts, numbers, booleans and tables as values. */
type TomlTable = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): value is TomlTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a quoted TOML key. Quoted keys and basic strings of TOML use the escapes of JSON (toml.io/en/v1.0.0#string). */
const keyOf = (name: string): string => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

/** Returns a table as TOML. The table's own values come before its sub-tables. */
export function tomlOf(table: TomlTable, path: readonly string[] = []): string {
  const entries = Object.entries(table);
  const own = entries.filter(([, value]) => !isTable(value));
  const header = path.length === 0 || own.length === 0 ? '' : `[${path.map(keyOf).join('.')}]\n`;
  const lines = own.map(([name, value]) => `${keyOf(name)} = ${JSON.stringify(value)}\n`).join('');
  const tables = entries.flatMap(([name, value]) => (isTable(value) ? [tomlOf(value, [...path, name])] : []));
  return [header + lines, ...tables].filter((text) => text !== '').join('\n');
}

const name = /\{(forwarder|key|model|folder|home)\}/g;

/** Inserts the values into a text of a preset. */
const fill = (text: string, values: PresetValues): string =>
  text.replace(name, (_, value: keyof PresetValues) => values[value]);

/** Inserts the values into all texts in the data of a preset, including member names. */
function fillDeep(value: unknown, values: PresetValues): unknown {
  if (typeof value === 'string') return fill(value, values);
  if (Array.isArray(value)) return value.map((item) => fillDeep(item, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [fill(key, values), fillDeep(member, values)]),
  );
}

/** The command and the environment variables that start a program, and the contents of files in its home folder by path. */
export interface ConfiguredProgram {
  readonly command: readonly [string, ...string[]];
  readonly variables: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** Paths of those files that keep the other members of an earlier JSON file. */
  readonly keeping: ReadonlySet<string>;
  /** Folders below the home folder in which the program looks for other programs first. */
  readonly programs: readonly string[];
}

/**
 * Merges three parts of a preset: the configuration for all models, for the model's protocol, and for the approval policy. Throws if
 * the preset supports none of the protocols of the run's model.
 */
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
  const contents = new Map<string, { readonly format: 'json' | 'toml'; readonly content: Record<string, unknown> }>();
  const scripts: Record<string, string> = {};
  const keeping = new Set<string>();
  for (const part of parts) {
    for (const [name, text] of Object.entries(part.variables ?? {})) variables[name] = fill(text, values);
    for (const [name, data] of Object.entries(part.jsonVariables ?? {}))
      variables[name] = JSON.stringify(fillDeep(data, values));
    for (const file of part.files ?? []) {
      if (file.format === 'script') {
        scripts[file.path] = file.content;
        continue;
      }
      const { path, format, content, keepsMembers } = file;
      if (keepsMembers) keeping.add(path);
      const filled = fillDeep(content, values) as Record<string, unknown>;
      contents.set(path, { format, content: { ...contents.get(path)?.content, ...filled } });
    }
  }
  const settings = [...contents].map(([path, { format, content }]) => [
    path,
    format === 'toml' ? tomlOf(content) : `${JSON.stringify(content, null, 2)}\n`,
  ]);
  const args = parts.flatMap((part) => part.args ?? []).map((text) => fill(text, values));
  return {
    command: [preset.program.command, ...args],
    variables,
    files: { ...scripts, ...Object.fromEntries(settings) },
    keeping,
    programs: parts.flatMap((part) => part.programs ?? []),
  };
}

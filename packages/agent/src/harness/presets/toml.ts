/** A value of TOML that a configuration has here: text, numbers, truth values, and tables of them. */
type TomlTable = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): value is TomlTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a key. Quoted keys and basic strings of TOML have the escapes of JSON (toml.io/en/v1.0.0#string). */
const keyOf = (name: string): string => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

/** Returns TOML of a table, its own values before its tables. */
export function tomlOf(table: TomlTable, path: readonly string[] = []): string {
  const entries = Object.entries(table);
  const own = entries.filter(([, value]) => !isTable(value));
  const header = path.length === 0 || own.length === 0 ? '' : `[${path.map(keyOf).join('.')}]\n`;
  const lines = own.map(([name, value]) => `${keyOf(name)} = ${JSON.stringify(value)}\n`).join('');
  const tables = entries.flatMap(([name, value]) => (isTable(value) ? [tomlOf(value, [...path, name])] : []));
  return [header + lines, ...tables].filter((text) => text !== '').join('\n');
}

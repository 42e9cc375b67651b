import type { PresetValues } from '@runyard/contract/agent/harness-presets/preset';

const name = /\{(forwarder|key|model|folder)\}/g;

/** Returns a text of a preset with its values. */
export const fill = (text: string, values: PresetValues): string =>
  text.replace(name, (_, value: keyof PresetValues) => values[value]);

/** Returns data of a preset with the values in all of its texts, names of members included. */
export function fillDeep(value: unknown, values: PresetValues): unknown {
  if (typeof value === 'string') return fill(value, values);
  if (Array.isArray(value)) return value.map((item) => fillDeep(item, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [fill(key, values), fillDeep(member, values)]),
  );
}

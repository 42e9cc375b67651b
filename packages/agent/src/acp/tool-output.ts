import { firstPart } from '@runyard/contract/wire/shorten';
import { maxDataChars } from './limits.ts';

/** An object in a tool call of a harness. The object is untrusted JSON of any shape. */
export type JsonObject = Record<string, unknown>;

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns the text of a tool call's `content`: text blocks, and the path of a diff. Undefined if there is no text. */
export function contentText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const parts = content.map((item) => {
    const block = asObject(item);
    if (block?.type === 'content') return blockText(block.content);
    if (block?.type === 'diff') return `[diff of ${asString(block.path) ?? 'a file'}]`;
    return undefined;
  });
  const texts = parts.filter((part) => part !== undefined);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Returns the text of an ACP content block; undefined if the block is of an unknown type. */
export function blockText(value: unknown): string | undefined {
  const block = asObject(value);
  switch (block?.type) {
    case 'text':
      return asString(block.text);
    case 'image':
    case 'audio':
      return `[${block.type}, ${asString(block.mimeType) ?? 'unknown type'}]`;
    case 'resource_link':
      return `[${asString(block.uri) ?? 'resource'}]`;
    case 'resource':
      return asString(asObject(block.resource)?.text) ?? `[${asString(asObject(block.resource)?.uri) ?? 'resource'}]`;
    default:
      return undefined;
  }
}

/**
 * Returns terminal output from members of `_meta` that ACP does not define. Codex sends `terminal_output_delta`; pi and others send
 * `terminal_output`. Each value is a new piece of the output.
 */
export function terminalOutput(meta: unknown): string | undefined {
  const members = asObject(meta);
  const parts = [members?.terminal_output_delta, members?.terminal_output].map((part) =>
    asString(asObject(part)?.data),
  );
  const texts = parts.filter((part) => part !== undefined);
  return texts.length === 0 ? undefined : texts.join('');
}

/** Returns the text in `rawOutput`. Harnesses use different names for the member with this text. */
export function rawOutputText(raw: unknown): string | undefined {
  if (typeof raw === 'string') return raw;
  const members = asObject(raw);
  if (members === undefined) return undefined;
  for (const key of ['output', 'formatted_output', 'aggregated_output', 'stdout', 'text', 'message', 'error']) {
    const text = asString(members[key]);
    if (text !== undefined && text !== '') return text;
  }
  return undefined;
}

export function exitCode(meta: unknown, raw: unknown): number | undefined {
  const output = asObject(raw);
  const candidates = [
    asObject(asObject(meta)?.terminal_exit)?.exit_code,
    output?.exit_code,
    output?.exitCode,
    asObject(output?.metadata)?.exit,
    asObject(output?.metadata)?.exit_code,
  ];
  return candidates.find((code): code is number => Number.isSafeInteger(code));
}

/** Returns how long a command ran, in ms, if the harness reports it; otherwise undefined. */
export function commandDuration(raw: unknown): number | undefined {
  const duration = asObject(raw)?.duration_ms;
  return Number.isFinite(duration) && (duration as number) >= 0 ? Math.round(duration as number) : undefined;
}

/**
 * Returns a copy of untrusted data in which long strings, long lists and deep nesting are cut. So if an action writes a file, the
 * event about the action does not contain the whole file.
 */
export function boundedData(value: unknown, maxStringLength = 16 * 1024): unknown {
  const bounded = cutDeep(value, maxStringLength, 0);
  const json = JSON.stringify(bounded) ?? 'null';
  return json.length <= maxDataChars
    ? bounded
    : { cut: firstPart(json, maxStringLength), cut_from_characters: json.length };
}

function cutDeep(value: unknown, maxStringLength: number, depth: number): unknown {
  if (typeof value === 'string') {
    return value.length <= maxStringLength
      ? value
      : `${firstPart(value, maxStringLength)}[… ${value.length - maxStringLength} characters left out …]`;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= 8) return '[…]';
  if (Array.isArray(value)) return value.slice(0, 200).map((item) => cutDeep(item, maxStringLength, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 200)
      .map(([key, member]) => [key, cutDeep(member, maxStringLength, depth + 1)]),
  );
}

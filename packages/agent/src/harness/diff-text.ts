import { shorten } from '@runyard/contract/wire/shorten';
import { createTwoFilesPatch } from 'diff';
import { asObject, asString, type JsonObject } from '../acp/tool-output.ts';

/** Maximum size of a file that is compared, because the time grows with the square of the number of differences. */
const maxCompared = 512 * 1024;
const compareTimeoutMs = 500;
const maxDiffLength = 64 * 1024;

/** Returns the change of a file as a unified diff; undefined if the file is too large to compare. */
function unifiedDiff(path: string, before: string, after: string): string | undefined {
  if (before.length + after.length > maxCompared) return undefined;
  const options = { context: 3, timeout: compareTimeoutMs };
  const patch = createTwoFilesPatch(path, path, before, after, undefined, undefined, options);
  // Omit the first two lines, which do not belong to the format of a unified diff.
  return patch === undefined ? undefined : shorten(patch.replace(/^Index: .*\n=+\n/, ''), maxDiffLength);
}

/**
 * Returns an update of a tool call in which a text for the conversation replaces each diff. The update is untrusted JSON of any shape.
 */
export function withDiffTexts(update: unknown): unknown {
  const members = asObject(update);
  if (members === undefined || !Array.isArray(members.content)) return update;
  return { ...members, content: members.content.map((item) => diffAsText(asObject(item)) ?? item) };
}

function diffAsText(block: JsonObject | undefined): JsonObject | undefined {
  if (block?.type !== 'diff') return undefined;
  const path = asString(block.path) ?? 'a file';
  const text = unifiedDiff(path, asString(block.oldText) ?? '', asString(block.newText) ?? '') ?? `[diff of ${path}]`;
  return { type: 'content', content: { type: 'text', text } };
}

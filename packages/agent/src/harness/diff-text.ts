import { shorten } from '@runyard/contract/wire/shorten';
import { createTwoFilesPatch } from 'diff';
import { asObject, asString, type JsonObject } from '../acp/tool-output.ts';

/** Maximum size of a file that is compared, because the time grows with the square of the number of differences. */
const maxCompared = 512 * 1024;
const compareTimeoutMs = 500;
const maxDiffLength = 64 * 1024;

/** The change of a file: a unified diff, or both texts if they are too large to compare. */
export type FileChange = { readonly path: string } & (
  | { readonly diff: string }
  | { readonly before: string; readonly after: string }
);

function changeOf({ path, oldText, newText }: JsonObject): FileChange {
  const name = asString(path) ?? 'a file';
  const [before, after] = [asString(oldText) ?? '', asString(newText) ?? ''];
  const options = { context: 3, timeout: compareTimeoutMs };
  const isSmall = before.length + after.length <= maxCompared;
  const patch = isSmall ? createTwoFilesPatch(name, name, before, after, undefined, undefined, options) : undefined;
  // Omit the first two lines, which do not belong to the format of a unified diff.
  return patch === undefined
    ? { path: name, before, after }
    : { path: name, diff: patch.replace(/^Index: .*\n=+\n/, '') };
}

/**
 * Returns an update of a tool call in which a text for the conversation replaces each diff. The member `changes` has the changes of all
 * diffs. The update is untrusted JSON of any shape.
 */
export function withDiffTexts(update: unknown): unknown {
  const { changes: _, ...members } = asObject(update) ?? {};
  if (!Array.isArray(members.content)) return update;
  const changes: FileChange[] = [];
  const content = members.content.map((item) => {
    const block = asObject(item);
    if (block?.type !== 'diff') return item;
    const change = changeOf(block);
    changes.push(change);
    const text = 'diff' in change ? shorten(change.diff, maxDiffLength) : `[diff of ${change.path}]`;
    return { type: 'content', content: { type: 'text', text } };
  });
  return { ...members, content, ...(changes.length === 0 ? {} : { changes }) };
}

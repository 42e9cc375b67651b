/**
 * Decides whether the input of an action is small enough to be shown whole to a person. This file imports only constants, because each
 * agent process loads this file at its start.
 */
import { maxAskedInputBytes, maxAskedInputDepth } from '../limits.ts';

/** Returns the reason why the whole input of an action cannot be shown to a person; undefined if it can be shown. */
export function askedInputFault(input: unknown): string | undefined {
  if (isDeeper(input, maxAskedInputDepth)) return `it has more than ${maxAskedInputDepth} levels of objects`;
  const bytes = new TextEncoder().encode(JSON.stringify(input) ?? '').length;
  return bytes > maxAskedInputBytes
    ? `it has ${bytes.toLocaleString('en')} bytes of JSON, and a question may show at most ${maxAskedInputBytes.toLocaleString('en')}`
    : undefined;
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeper(member, depth - 1));
}

import { isUtf8 } from 'node:buffer';
import type { Fault } from '../fault.ts';
import { invalid } from './problem.ts';

const maxDepth = 100;
const maxFaults = 20;

/**
 * What PostgreSQL cannot store as jsonb or text, or what would harm a merge: U+0000 and lone surrogates in strings and
 * names, `__proto__`, nesting deeper than 100. Iterative, because the depth is the sender's.
 */
export function findUnstorable(root: unknown): Fault[] {
  const faults: Fault[] = [];
  const pending: { value: unknown; path: string; depth: number }[] = [{ value: root, path: '', depth: 0 }];
  for (let at = pending.pop(); at && faults.length < maxFaults; at = pending.pop()) {
    const { value, path, depth } = at;
    if (typeof value === 'string') {
      const message = textFault(value);
      if (message) faults.push({ path, message });
    } else if (typeof value === 'object' && value !== null) {
      if (depth >= maxDepth) return [{ path: '', message: `must not nest deeper than ${maxDepth} levels` }];
      for (const [name, member] of Object.entries(value)) {
        const message = name === '__proto__' ? 'is not allowed as a name' : textFault(name);
        const memberPath = path ? `${path}.${name}` : name;
        if (message) faults.push({ path: memberPath.replaceAll('\u0000', '\\u0000').toWellFormed(), message });
        if (typeof member === 'string' || typeof member === 'object') {
          pending.push({ value: member, path: memberPath, depth: depth + 1 });
        }
      }
    }
  }
  return faults;
}

function textFault(text: string): string | undefined {
  if (text.includes('\u0000')) return 'must not contain the NUL character (U+0000)';
  return text.isWellFormed() ? undefined : 'must not contain half of a surrogate pair';
}

/** Parses a JSON body; an empty one is `undefined`. Throws a 400 refusal. */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw invalid([{ path: '', message: 'the body is not valid UTF-8' }]);
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    const reason = error instanceof SyntaxError ? `: ${error.message}` : '';
    throw invalid([{ path: '', message: `the body is not valid JSON${reason.slice(0, 200)}` }]);
  }
  const faults = findUnstorable(value);
  if (faults.length > 0) throw invalid(faults);
  return value;
}

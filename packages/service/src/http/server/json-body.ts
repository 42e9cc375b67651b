import { isUtf8 } from 'node:buffer';
import type { Fault } from '../../fault.ts';
import { invalid, refuse } from './problem.ts';

const maxDepth = 100;
const maxFaults = 20;
/**
 * Values in a body: one of 64 MB may be 20 million empty arrays, which take gigabytes. Each that is wrong costs its schema
 * time, in which nobody else is answered. A request needs some dozen.
 */
export const maxValuesOfRequest = 20_000;

/** In what an agent reports: its batches have half a megabyte at most, but it may be a list of numbers. */
export const maxValuesOfReport = 300_000;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const arrayStart = 0x5b;
const objectStart = 0x7b;

/** Where the string ends that begins at `start`; -1: nowhere. */
function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(quote, start + 1);
  for (; end !== -1; end = json.indexOf(quote, end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === backslash) backslashes += 1;
    if (backslashes % 2 === 0) break;
  }
  return end;
}

/** Whether there are more values in a JSON text than a body may have, told without making them. */
function hasTooManyValues(json: Buffer, maxValues: number): boolean {
  // Each has a byte at least.
  if (json.length <= maxValues) return false;
  let count = 1;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) {
      at = endOfString(json, at);
      if (at === -1) return false;
    } else if (byte === comma || byte === arrayStart || byte === objectStart) {
      count += 1;
      if (count > maxValues) return true;
    }
  }
  return false;
}

function textFault(text: string): string | undefined {
  if (text.includes('\u0000')) return 'must not contain the NUL character (U+0000)';
  return text.isWellFormed() ? undefined : 'must not contain half of a surrogate pair';
}

/**
 * What PostgreSQL cannot store as jsonb or text, or what would harm a merge: U+0000 and lone surrogates in strings and
 * names, `__proto__`, nesting deeper than 100.
 */
function findUnstorable(root: unknown): Fault[] {
  const faults: Fault[] = [];
  const path: (string | number)[] = [];
  const note = (message: string | undefined) => {
    if (!message) return;
    faults.push({ path: path.join('.').replaceAll('\u0000', '\\u0000').toWellFormed(), message });
  };
  /** False: it is nested too deeply, or enough was found. */
  const visit = (value: unknown): boolean => {
    if (typeof value === 'string') note(textFault(value));
    if (typeof value !== 'object' || value === null) return faults.length < maxFaults;
    if (path.length >= maxDepth) {
      faults.splice(0, faults.length, { path: '', message: `must not nest deeper than ${maxDepth} levels` });
      return false;
    }
    const isArray = Array.isArray(value);
    const members: readonly unknown[] = isArray ? value : Object.values(value);
    const names = isArray ? null : Object.keys(value);
    for (let index = 0; index < members.length; index += 1) {
      const name = names?.[index] ?? index;
      path.push(name);
      if (typeof name === 'string') note(name === '__proto__' ? 'is not allowed as a name' : textFault(name));
      if (!visit(members[index])) return false;
      path.pop();
    }
    return true;
  };
  visit(root);
  return faults;
}

/** Throws a 415 refusal of a compressed body (RFC 9110, 15.5.16): a small one could become any amount of memory. */
export function refuseCoding(contentEncoding: string | undefined): void {
  if (['', 'identity'].includes((contentEncoding ?? '').toLowerCase())) return;
  throw refuse('invalid_request', {
    status: 415,
    detail: `The body has the Content-Encoding ${contentEncoding?.slice(0, 40)}. Send it without one.`,
    headers: { 'accept-encoding': 'identity' },
  });
}

/** Parses a JSON body; an empty one is `undefined`. Throws a 400 refusal. */
export function parseJsonBody(body: Buffer, maxValues = maxValuesOfRequest): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw invalid([{ path: '', message: 'the body is not valid UTF-8' }]);
  if (hasTooManyValues(body, maxValues))
    throw invalid([{ path: '', message: `must not hold more than ${maxValues} values` }]);
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

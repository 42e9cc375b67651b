/** Checks a JSON text byte by byte without building its values: 16 MB of `{},{},…` would become gigabytes of objects. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** The place of a value in the text: the bytes from `start` up to, but not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface JsonBounds {
  readonly maxValues: number;
  /** Largest number of nested arrays and objects. */
  readonly maxDepth: number;
  /** True: the text is refused if a nested object repeats a member name, because parsers differ in which of the values they use. */
  readonly uniqueNames?: boolean;
}

/**
 * `members`: the place of each value of the outermost object, by member name; for a repeated name, the place of the last value.
 * Undefined: the text is not an object.
 */
export type ScannedJson =
  | { readonly kind: 'json'; readonly members: ReadonlyMap<string, Span> | undefined }
  | { readonly kind: 'not_json' | 'too_many_values' | 'too_deep' | 'repeated_name' };

/** Bytes of one slice, which takes about 2 ms. Other work runs between two slices. */
const sliceBytes = 256 * 1024;
/** No valid number in a request is longer than this. */
const maxScalarBytes = 1000;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const arrayStart = 0x5b;
const arrayEnd = 0x5d;
const objectStart = 0x7b;
const objectEnd = 0x7d;

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const simpleEscapes: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);

/** The tokens that the grammar allows at the current place. */
type Expected = 'value' | 'value_or_end' | 'name' | 'name_or_end' | 'colon' | 'comma_or_end' | 'nothing';

/**
 * Checks a text in valid UTF-8 against the grammar of RFC 8259. Reads the text in slices; between two slices the process does other
 * work. The time is linear in the length of the text. Stops at the first fault.
 */
export async function scanJson(text: Buffer, bounds: JsonBounds): Promise<ScannedJson> {
  const scanner = makeScanner(text, bounds);
  for (let until = sliceBytes; ; until += sliceBytes) {
    const result = scanner(until);
    if (result !== undefined) return result;
    await nextTurn();
  }
}

/** Makes a function that reads up to an offset. The function returns the result, or undefined if it needs more of the text. */
function makeScanner(
  text: Buffer,
  { maxValues, maxDepth, uniqueNames }: JsonBounds,
): (until: number) => ScannedJson | undefined {
  const members = new Map<string, Span>();
  /** The open objects (true) and arrays (false), the outermost first. */
  const open: boolean[] = [];
  /** The member names of each open object; undefined before its first member. */
  const names: (Set<string> | undefined)[] = [];
  let isObject = false;
  let isRepeated = false;
  let expected: Expected = 'value';
  let at = 0;
  let values = 0;
  let inString = false;
  let isName = false;
  let tokenStart = 0;
  let member: string | undefined;
  let memberStart = 0;

  /** Ends the value whose last byte is before `at`. */
  const endValue = (): void => {
    if (open.length === 1 && member !== undefined) {
      members.set(member, { start: memberStart, end: at });
      member = undefined;
    }
    expected = open.length === 0 ? 'nothing' : 'comma_or_end';
  };

  const nameAt = (start: number): string => JSON.parse(text.toString('utf8', start, at)) as string;

  const noteName = (name: string): void => {
    const depth = open.length;
    const known = names[depth] ?? new Set<string>();
    names[depth] = known;
    if (known.has(name)) isRepeated = true;
    known.add(name);
  };

  /** Continues to read the current string, at most up to the offset `until`. Returns false if the string is not valid. */
  const readString = (until: number): boolean => {
    const end = Math.min(until, text.length);
    while (at < end) {
      const byte = text[at] as number;
      if (byte === quote) {
        at += 1;
        inString = false;
        if (!isName) endValue();
        else {
          if (open.length === 1) member = nameAt(tokenStart);
          else if (uniqueNames) noteName(nameAt(tokenStart));
          expected = 'colon';
        }
        return true;
      }
      if (byte < 0x20) return false;
      if (byte !== backslash) {
        at += 1;
        continue;
      }
      const escaped = text[at + 1] ?? 0;
      if (simpleEscapes.has(escaped)) at += 2;
      else if (escaped === 0x75 && [2, 3, 4, 5].every((offset) => isHex(text[at + offset] ?? 0))) at += 6;
      else return false;
    }
    return true;
  };

  const readScalar = (): boolean => {
    const start = at;
    while (at < text.length && at - start <= maxScalarBytes) {
      const byte = text[at] as number;
      if (isSpace(byte) || byte === comma || byte === arrayEnd || byte === objectEnd) break;
      at += 1;
    }
    if (!scalar.test(text.toString('latin1', start, at))) return false;
    endValue();
    return true;
  };

  return (until) => {
    while (at < until) {
      if (inString) {
        if (!readString(until)) return { kind: 'not_json' };
        if (isRepeated) return { kind: 'repeated_name' };
        if (inString && at >= text.length) return { kind: 'not_json' };
        continue;
      }
      while (at < text.length && at < until && isSpace(text[at] as number)) at += 1;
      if (at >= text.length) {
        if (expected !== 'nothing') return { kind: 'not_json' };
        return { kind: 'json', members: isObject ? members : undefined };
      }
      if (at >= until) return undefined;
      const byte = text[at] as number;
      const inObject = open.at(-1);
      if (byte === comma && expected === 'comma_or_end') {
        at += 1;
        expected = inObject ? 'name' : 'value';
      } else if (byte === colon && expected === 'colon') {
        at += 1;
        expected = 'value';
      } else if (
        (byte === objectEnd && inObject === true && (expected === 'comma_or_end' || expected === 'name_or_end')) ||
        (byte === arrayEnd && inObject === false && (expected === 'comma_or_end' || expected === 'value_or_end'))
      ) {
        at += 1;
        names[open.length] = undefined;
        open.pop();
        endValue();
      } else if (byte === quote && (expected === 'name' || expected === 'name_or_end')) {
        tokenStart = at;
        at += 1;
        inString = true;
        isName = true;
      } else if (expected === 'value' || expected === 'value_or_end') {
        values += 1;
        if (values > maxValues) return { kind: 'too_many_values' };
        if (open.length === 1 && member !== undefined) memberStart = at;
        if (byte === quote) {
          at += 1;
          inString = true;
          isName = false;
        } else if (byte === objectStart || byte === arrayStart) {
          if (open.length >= maxDepth) return { kind: 'too_deep' };
          at += 1;
          if (open.length === 0) isObject = byte === objectStart;
          open.push(byte === objectStart);
          expected = byte === objectStart ? 'name_or_end' : 'value_or_end';
        } else if (!readScalar()) return { kind: 'not_json' };
      } else return { kind: 'not_json' };
    }
    return undefined;
  };
}

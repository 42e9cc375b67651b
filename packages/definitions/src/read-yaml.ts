/** Reads the YAML of definition files, which is untrusted. */

import type { FaultCode } from '@runyard/contract/factories/fault-codes';
import { type Position, start } from '@runyard/contract/factories/files/faults';
import { maxDefinitionYamlBytes } from '@runyard/contract/limits';
import { shorten } from '@runyard/contract/wire/shorten';
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from 'yaml';

type Path = readonly PropertyKey[];

/** A parsed file with the positions of its members. */
export interface Located {
  readonly value: unknown;
  /** Returns the position of a member's value. If the member does not exist, returns the position of the nearest existing parent. */
  valueAt(path: Path): Position;
  /** Returns the position of a member's key. If the member does not exist, returns the position of the nearest existing parent's value. */
  keyAt(path: Path): Position;
}

export interface YamlFault {
  readonly position: Position;
  readonly message: string;
  readonly code: FaultCode;
}

export type ReadYaml =
  /** `values`: number of values in the file. Each map and each list also counts as a value. */
  | { readonly ok: true; readonly located: Located; readonly values: number }
  | { readonly ok: false; readonly faults: readonly YamlFault[] };

/** Maximum number of levels of nested maps and lists in a file. */
const maxDepth = 32;
const maxFaults = 20;
const invalidYaml: FaultCode = 'FF_INVALID_YAML';

/** State of reading one file. */
interface Reading {
  readonly faults: YamlFault[];
  /** Number of values that were read so far. */
  values: number;
  /** Returns the position of an offset in the text. */
  readonly at: (offset: number) => Position;
}

/**
 * The offsets of a value and of its key in the text, and the places of the value's members by key or index. The places form a tree. A
 * map with the whole path of each member could take gigabytes, because each key may be as long as the text.
 */
interface Place {
  readonly value: number | undefined;
  readonly key: number | undefined;
  readonly members: Map<string, Place>;
}

const offsetOf = (node: Node): number => node.range?.[0] ?? 0;
const makePlace = (value: Node | null, key?: Node): Place => ({
  value: value ? offsetOf(value) : undefined,
  key: key && offsetOf(key),
  members: new Map(),
});

/**
 * Reads one YAML document, version 1.2, as plain values. Anchors, aliases, tags and duplicate keys are faults. Merge keys are plain
 * keys. So no value refers to another value, and the result is never larger than the text. `linesBefore` is added to the line of every
 * position.
 */
export function readYaml(text: string, linesBefore: number): ReadYaml {
  const moved = ({ line, column }: Position): Position => ({ line: line + linesBefore, column });
  const refuse = (message: string): ReadYaml => ({
    ok: false,
    faults: [{ position: moved(start), message, code: invalidYaml }],
  });
  if (Buffer.byteLength(text) > maxDefinitionYamlBytes)
    return refuse(`the YAML of a file has at most ${maxDefinitionYamlBytes} bytes`);
  const tooDeep = `maps and lists nest at most ${maxDepth} levels`;
  const lines = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return moved({ line: Math.max(1, line), column: Math.max(1, col) });
  };
  const document = parse(text, lines);
  // The library calls itself for each nested map or list. If they nest too deep, the library throws a RangeError (`parse` then returns
  // undefined) or reports RESOURCE_EXHAUSTION.
  if (document === undefined || document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION'))
    return refuse(tooDeep);
  const errors = [...document.errors, ...document.warnings];
  if (errors.length > 0) {
    const faults = errors.slice(0, maxFaults).map(({ pos, message, code }) => ({
      position: at(pos[0]),
      message: firstLine(message),
      code: code === 'TAG_RESOLVE_FAILED' ? ('FF_TAG' as const) : invalidYaml,
    }));
    return { ok: false, faults };
  }
  const reading: Reading = { faults: [], values: 0, at };
  const root = makePlace(document.contents);
  const value = document.contents === null ? null : toValue(document.contents, root, 0, reading);
  if (reading.faults.length > 0) return { ok: false, faults: reading.faults };
  /** Returns the places on the path from the root to a member. Ends at the first place that does not exist. */
  const placesTo = (path: Path): Place[] => {
    const places = [root];
    for (const part of path) {
      const next = places.at(-1)?.members.get(String(part));
      if (next === undefined) break;
      places.push(next);
    }
    return places;
  };
  const lastValue = (places: readonly Place[]): Position => {
    const offset = places.findLast((place) => place.value !== undefined)?.value;
    return offset === undefined ? moved(start) : at(offset);
  };
  return {
    ok: true,
    values: reading.values,
    located: {
      value,
      valueAt: (path) => lastValue(placesTo(path)),
      keyAt: (path) => {
        const places = placesTo(path);
        const key = places.length > path.length ? places.at(-1)?.key : undefined;
        return key === undefined ? lastValue(places.slice(0, path.length)) : at(key);
      },
    },
  };
}

function parse(text: string, lineCounter: LineCounter) {
  const { stackTraceLimit } = Error;
  // Turns off stack traces: a hostile file can have an error at every character, and the traces would take most of the time.
  Error.stackTraceLimit = 0;
  try {
    // Turns off `uniqueKeys`, because the library would compare each pair of keys. `toObject` finds duplicate keys faster, with a map.
    return parseDocument(text, {
      lineCounter,
      version: '1.2',
      schema: 'core',
      merge: false,
      uniqueKeys: false,
      stringKeys: true,
      prettyErrors: false,
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const firstLine = (message: string): string => shorten(message.split('\n')[0] ?? '', 200);

function fault(reading: Reading, node: Node, message: string, code: FaultCode = invalidYaml): undefined {
  if (reading.faults.length < maxFaults) reading.faults.push({ position: reading.at(offsetOf(node)), message, code });
  return undefined;
}

/**
 * Converts a node into a plain value, and adds the places of the node's members to `place`. `level`: how deep the node is nested; 0
 * for the whole document.
 */
function toValue(node: Node, place: Place, level: number, reading: Reading): unknown {
  reading.values += 1;
  if (isAlias(node)) return fault(reading, node, 'aliases (*name) are not accepted; repeat the value', 'FF_ALIAS');
  if (node.anchor) return fault(reading, node, 'anchors (&name) are not accepted; repeat the value', 'FF_ANCHOR');
  // The tag is defined only if the text has a tag.
  if (node.tag) return fault(reading, node, 'tags (!name) are not accepted; use quotes to make a text', 'FF_TAG');
  if (level > maxDepth) return fault(reading, node, `maps and lists nest at most ${maxDepth} levels`);
  if (isScalar(node)) return toScalar(node, reading);
  if (isSeq(node))
    return node.items.map((item, index) =>
      toMember(isNode(item) ? item : null, [place, String(index)], level, reading),
    );
  return isMap(node) ? toObject(node, place, level, reading) : fault(reading, node, 'is not a map, list or scalar');
}

function toMember(
  node: Node | null,
  [parent, name]: readonly [Place, string],
  level: number,
  reading: Reading,
  key?: Node,
): unknown {
  const place = makePlace(node, key);
  parent.members.set(name, place);
  return node ? toValue(node, place, level + 1, reading) : null;
}

function toScalar(node: Scalar, reading: Reading): unknown {
  const { value } = node;
  const message = typeof value === 'string' ? textFault(value) : undefined;
  if (message !== undefined) return fault(reading, node, message);
  if (typeof value === 'number' && !Number.isFinite(value))
    return fault(reading, node, 'is not a finite number; put it in quotes to make a text');
  return value;
}

/**
 * Returns the fault of a text with characters that the service cannot store. Files with these characters are refused earlier, but escapes
 * such as `"\0"` can still create them.
 */
function textFault(text: string): string | undefined {
  if (text.includes('\u0000')) return 'contains the NUL character (U+0000)';
  return text.isWellFormed() ? undefined : 'contains half of a surrogate pair';
}

function toObject(node: YAMLMap, place: Place, level: number, reading: Reading): unknown {
  const entries = new Map<string, unknown>();
  for (const { key, value } of node.items) {
    if (!isScalar(key) || typeof key.value !== 'string') {
      fault(reading, isNode(key) ? key : node, 'keys must be plain text; put the key in quotes');
      continue;
    }
    const name = key.value;
    if (key.anchor) fault(reading, key, 'anchors (&name) are not accepted; repeat the value', 'FF_ANCHOR');
    if (name === '__proto__') {
      fault(reading, key, 'is not accepted as a key');
      continue;
    }
    const unstorable = textFault(name);
    if (unstorable !== undefined) {
      fault(reading, key, `the key ${unstorable}`);
      continue;
    }
    const first = place.members.get(name)?.key;
    if (first !== undefined) {
      const { line } = reading.at(first);
      fault(
        reading,
        key,
        `the key ${shorten(name, 80)} is there twice; the first is in line ${line}`,
        'FF_DUPLICATE_KEY',
      );
      continue;
    }
    entries.set(name, toMember(isNode(value) ? value : null, [place, name], level, reading, key));
  }
  return Object.fromEntries(entries);
}

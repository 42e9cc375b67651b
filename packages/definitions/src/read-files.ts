/** Sorts the files of a definition, and reads the text and YAML of each. */
import {
  compare,
  type Faults,
  maxDefinitionFaults,
  type Position,
  start,
} from '@runyard/contract/factories/files/faults';
import {
  type Placed,
  pathFault,
  placeOf,
  type ResourceKind,
  shownPath,
} from '@runyard/contract/factories/files/layout';
import {
  maxDefinitionBytes,
  maxDefinitionFiles,
  maxDefinitionYamlTotalBytes,
  maxDefinitionYamlValues,
  maxFactoryAgents,
  maxFactoryAutomations,
  maxFactoryEnvironments,
  maxFactoryRunners,
  maxFactoryWebhooks,
} from '@runyard/contract/limits';
import { bytesOf, readText } from './read-text.ts';
import { type Located, readYaml } from './read-yaml.ts';

type FrontMatter =
  | {
      readonly ok: true;
      readonly yaml: string;
      /** Number of lines of the file before the first line of `yaml`. */
      readonly linesBefore: number;
      /** The text after the front matter, without blank lines around the text. */
      readonly body: string;
      /** Position at which the body begins, or would begin if it is empty. */
      readonly bodyStart: Position;
    }
  | { readonly ok: false; readonly position: Position; readonly message: string };

const fence = /^---[ \t]*$/;

/**
 * Splits a Markdown file whose first line is `---`. The front matter must be YAML. A language after the first fence, such as `---js`, is
 * refused, because other parsers execute such front matter as code.
 */
function splitFrontMatter(text: string): FrontMatter {
  const lines = text.split('\n');
  const first = lines[0] ?? '';
  if (!fence.test(first)) {
    const message = /^---[^-\s]/.test(first)
      ? 'must begin with a line of --- alone: the front matter is YAML, and no other language is read'
      : 'must begin with front matter: a line of ---, YAML, and a line of ---';
    return { ok: false, position: start, message };
  }
  const end = lines.findIndex((line, index) => index > 0 && fence.test(line));
  if (end < 0) return { ok: false, position: start, message: 'must close the front matter with a line of ---' };
  const body = lines.slice(end + 1);
  const blank = body.findIndex((line) => line.trim() !== '');
  return {
    ok: true,
    yaml: lines.slice(1, end).join('\n'),
    linesBefore: 1,
    body: body
      .join('\n')
      .replace(/^(?:[^\S\n]*\n)+/, '')
      .trimEnd(),
    bodyStart: { line: end + 2 + Math.max(0, blank), column: 1 },
  };
}

/** A file from a folder, a repository or a request. */
export interface DefinitionFile {
  /** Relative to the folder with factory.yaml, with `/` between folders. */
  readonly path: string;
  readonly content: string | Uint8Array;
}

/** A file of the definition with its parsed YAML. */
export interface ReadFile {
  readonly path: string;
  readonly placed: Extract<Placed, { kind: 'factory' | 'variables' | ResourceKind }>;
  readonly located: Located;
  /** Text behind the front matter; empty in YAML files. */
  readonly body: string;
  readonly bodyStart: { readonly line: number; readonly column: number };
}

export interface ReadSkill {
  readonly path: string;
  readonly folder: string;
  readonly agent?: string;
  readonly text: string;
}

export interface ReadFiles {
  readonly files: readonly ReadFile[];
  readonly skills: readonly ReadSkill[];
}

type PlacedFile = DefinitionFile & { readonly placed: Exclude<Placed, { kind: 'other' | 'fault' | 'not_available' }> };

const most: Readonly<Record<ResourceKind, number>> = {
  agent: maxFactoryAgents,
  automation: maxFactoryAutomations,
  webhook: maxFactoryWebhooks,
  runner: maxFactoryRunners,
  environment: maxFactoryEnvironments,
};

/** Reads the files that belong to a definition. Stops early if there are too many files or too many faults. */
export function readFiles(all: Iterable<DefinitionFile>, faults: Faults, notices: Faults): ReadFiles {
  const placed = placeFiles(all, faults, notices);
  const nothing = { files: [], skills: [] };
  return placed === undefined || exceedsLimits(placed, faults) ? nothing : readContents(placed.files, faults);
}

/** Files of a definition. `bytes`: size of all its files, including files that have no effect on this service and are not in `files`. */
interface PlacedFiles {
  readonly files: readonly PlacedFile[];
  readonly bytes: number;
}

function placeFiles(all: Iterable<DefinitionFile>, faults: Faults, notices: Faults): PlacedFiles | undefined {
  const result: PlacedFile[] = [];
  const seen = new Map<string, string>();
  let bytes = 0;
  for (const { path, content } of all) {
    // `pathFault` refuses long paths before `placeOf` splits the path, because the parts of a very long path would take gigabytes.
    const message = pathFault(path);
    const placed: Placed = message === undefined ? placeOf(path) : { kind: 'fault', message };
    if (placed.kind === 'other') continue;
    bytes += bytesOf(content);
    if (placed.kind === 'not_available') notices.add(path, start, placed.reason);
    else if (placed.kind === 'fault')
      faults.add(
        message === undefined ? path : shownPath(path),
        start,
        placed.message,
        placed.suggestion,
        'FF_UNSUPPORTED_PATH',
      );
    else {
      const folded = path.normalize('NFC').toLowerCase();
      const other = seen.get(folded);
      if (other !== undefined)
        faults.add(
          path,
          start,
          other === path ? 'is there twice' : `differs from ${other} only in case`,
          undefined,
          'FF_DUPLICATE_PATH',
        );
      seen.set(folded, path);
      result.push({ path, content, placed });
    }
    if (result.length > maxDefinitionFiles) {
      faults.add(path, start, `a definition has at most ${maxDefinitionFiles} files`, undefined, 'FF_INVALID_DOCUMENT');
      return undefined;
    }
    if (faults.count() >= maxDefinitionFaults) return undefined;
  }
  return { files: result.toSorted((a, b) => compare(a.path, b.path)), bytes };
}

function exceedsLimits({ files: placed, bytes }: PlacedFiles, faults: Faults): boolean {
  const last = placed.at(-1)?.path ?? 'factory.yaml';
  if (bytes > maxDefinitionBytes)
    faults.add(last, start, `all files have at most ${maxDefinitionBytes} bytes together`);
  for (const [kind, limit] of Object.entries(most)) {
    const surplus = placed.filter((file) => file.placed.kind === kind)[limit];
    if (surplus) faults.add(surplus.path, start, `a factory has at most ${limit} ${kind}s`);
  }
  return faults.count() > 0 && bytes > maxDefinitionBytes;
}

function readContents(placed: readonly PlacedFile[], faults: Faults): ReadFiles {
  const files: ReadFile[] = [];
  const skills: ReadSkill[] = [];
  let yamlBytes = 0;
  let yamlValues = 0;
  for (const { path, content, placed: place } of placed) {
    if (faults.count() >= maxDefinitionFaults) break;
    const read = readText(content);
    if (!read.ok) {
      faults.add(path, read.position, read.message, undefined, 'FF_INVALID_DOCUMENT');
      continue;
    }
    if (place.kind === 'skill') {
      const { kind: _kind, ...skill } = place;
      skills.push({ path, ...skill, text: read.text });
      continue;
    }
    const parts = path.endsWith('.md') ? splitFrontMatter(read.text) : wholeYaml(read.text);
    if (!parts.ok) {
      faults.add(path, parts.position, parts.message, undefined, 'FF_MALFORMED_FRONTMATTER');
      continue;
    }
    yamlBytes += Buffer.byteLength(parts.yaml);
    if (yamlBytes > maxDefinitionYamlTotalBytes) {
      faults.add(path, start, `the YAML of all files has at most ${maxDefinitionYamlTotalBytes} bytes together`);
      break;
    }
    const yaml = readYaml(parts.yaml, parts.linesBefore);
    if (!yaml.ok) {
      for (const { position, message, code } of yaml.faults) faults.add(path, position, message, undefined, code);
      continue;
    }
    yamlValues += yaml.values;
    // Limits not only the bytes but also the number of values. The time to read a definition depends mainly on the number of values, and
    // the service reads a definition for each comparison.
    if (yamlValues > maxDefinitionYamlValues) {
      faults.add(path, start, `the YAML of all files has at most ${maxDefinitionYamlValues} values together`);
      break;
    }
    files.push({ path, placed: place, located: yaml.located, body: parts.body, bodyStart: parts.bodyStart });
  }
  return { files, skills };
}

const wholeYaml = (yaml: string) => ({ ok: true as const, yaml, linesBefore: 0, body: '', bodyStart: start });

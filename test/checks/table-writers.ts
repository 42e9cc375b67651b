/**
 * Finds statements that write a table of another room. A room that needs such a write calls a function of the owner, or
 * puts an SQL fragment that the owner exports into its statement.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readSourceFiles } from './import-graph.ts';
import { roomNameOf } from './import-rules.ts';
import { filesNamingTablesAtRunTime, tableRules } from './table-owners.ts';

const servicePrefix = 'packages/service/src/';
/** The check skips this folder, because migrations, export and import write all tables. */
const storePrefix = `${servicePrefix}platform/store/`;

/**
 * Matches the beginning of a statement that writes. Does not match the UPDATE in `FOR UPDATE`, `FOR NO KEY UPDATE`, `DO UPDATE` or
 * `BEFORE UPDATE`, which begins no statement.
 */
const writePattern =
  /\b(INSERT INTO|DELETE FROM|TRUNCATE(?: TABLE)?|MERGE INTO|(?<!\b(?:FOR|KEY|DO|BEFORE|AFTER|OR)\s+)UPDATE)\s+(?:ONLY\s+)?([a-z_]+|\$\{)/g;

/** A statement that writes a table. */
interface Write {
  readonly verb: string;
  readonly table: string;
  /** Columns that an UPDATE sets. Empty for other statements. Leaves out parts that the code inserts. */
  readonly columns: readonly string[];
}

/** Returns the source without comment lines, because a comment may contain a statement. */
const withoutComments = (source: string): string => source.replace(/^[ \t]*(?:\/\/|\/?\*).*$/gm, '');

/** Words and marks that end the assignments of an UPDATE outside of all brackets. */
const endsAssignments = /^(?:FROM|WHERE|RETURNING|`|;)$/;

/** Returns the columns that an UPDATE assigns. `text` is the text after SET, such as `a = …, (b, c) = …`. */
function readColumns(text: string): string[] {
  const columns: string[] = [];
  let depth = 0;
  let isStart = true;
  for (const { 0: word, index } of text.matchAll(/\$\{|'[^']*'|\w+|\S/g)) {
    if (depth === 0 && endsAssignments.test(word)) break;
    if (depth === 0 && isStart) columns.push(...columnsBefore(text.slice(index)));
    if (word === '${' || word === '(' || word === '{') depth += 1;
    else if (word === ')' || word === '}') depth -= 1;
    if (depth < 0) break;
    // After a comma, the next word can begin an assignment. The same is true after inserted code (`${…}`) at the start of an assignment,
    // because the inserted code may end in a comma.
    if (depth === 0) isStart = word === ',' || (isStart && word === '}');
  }
  return columns;
}

/** Returns the columns of the assignment at the beginning of the text: `a = ` or `(a, b) = `. */
function columnsBefore(text: string): string[] {
  const names = /^(\w+|\([\w\s,]+\))\s*=/.exec(text)?.[1];
  return names?.match(/\w+/g) ?? [];
}

/** Returns every statement of a source file that writes a table. */
function readWrites(source: string): Write[] {
  const text = withoutComments(source);
  return [...text.matchAll(writePattern)].flatMap((match): Write[] => {
    const [whole, verb = '', table = ''] = match;
    if (verb !== 'UPDATE' || table === '${') return [{ verb, table, columns: [] }];
    const rest = text.slice(match.index + whole.length);
    const set = /^(?:\s+(?:AS\s+)?(?!SET\b)\w+)?\s+SET\s/.exec(rest);
    // UPDATE without SET is no statement: the word can be in any text.
    return set ? [{ verb, table, columns: readColumns(rest.slice(set[0].length)) }] : [];
  });
}

function faultsOf(file: string, { verb, table, columns }: Write): string[] {
  const room = roomNameOf(file);
  if (table === '${') {
    return filesNamingTablesAtRunTime.includes(file)
      ? []
      : [`${file}: a statement names its table at run time, so this check cannot tell which room writes it`];
  }
  const rule = tableRules[table];
  if (!rule) return [`${file}: the table ${table} has no owner in test/checks/table-owners.ts`];
  const restricted = columns.filter((column) => rule.columns?.[column]);
  const foreign = restricted.filter((column) => !rule.columns?.[column]?.includes(room));
  const isAllowed =
    (verb === 'DELETE FROM' && room === rule.alsoDeletedBy) ||
    (columns.length > 0 && restricted.length === columns.length);
  return [
    ...(room === rule.owner || isAllowed ? [] : [`${file} writes the table ${table}, which only ${rule.owner} writes`]),
    ...foreign.map(
      (column) => `${file} sets ${table}.${column}, which only ${rule.columns?.[column]?.join(', ')} sets`,
    ),
  ];
}

/** Returns a sentence for each statement that writes a table of another room. */
export function findWriterFaults(root: string): string[] {
  const files = readSourceFiles(root).filter((file) => file.startsWith(servicePrefix) && !file.startsWith(storePrefix));
  const faults = files.flatMap((file) =>
    readWrites(readFileSync(path.join(root, file), 'utf8')).flatMap((write) => faultsOf(file, write)),
  );
  return [...new Set(faults)];
}

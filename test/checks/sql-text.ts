/** Reads the SQL in TypeScript sources. The SQL is in their string and template literals. */

/** Replaces each `${…}` of a template literal in the texts that `readLiterals` returns. */
export const inserted = '§';

/**
 * Returns the text of every string and template literal of a source, without comments. A `${…}` in a template becomes `inserted`.
 * Literals inside the `${…}` are returned separately.
 */
export function readLiterals(source: string): string[] {
  const literals: string[] = [];
  let index = 0;
  /** Reads code up to the brace that closes the `${` of a template, or to the end of the source. */
  const readCode = (): void => {
    for (let depth = 0; index < source.length; index += 1) {
      const two = source.slice(index, index + 2);
      const [char = ''] = two;
      if (two === '//') index = endOf('\n', index);
      else if (two === '/*') index = endOf('*/', index) + 1;
      else if (char === "'" || char === '"' || char === '`') literals.push(readLiteral(char));
      else if (char === '/') index = endOfPattern(index);
      else if (char === '{') depth += 1;
      else if (char === '}' && depth-- === 0) return;
    }
  };
  /** Reads a literal. Moves `index` from the first quote of the literal to its last quote. */
  const readLiteral = (quote: string): string => {
    let text = '';
    for (index += 1; index < source.length && source[index] !== quote; index += 1) {
      if (source[index] === '\\') {
        index += 1;
        text += ' ';
      } else if (quote === '`' && source.startsWith('${', index)) {
        index += 2;
        readCode();
        text += inserted;
      } else text += source[index];
    }
    return text;
  };
  const endOf = (end: string, from: number): number => {
    const found = source.indexOf(end, from);
    return found < 0 ? source.length : found;
  };
  /** Returns the last index of the regular expression that begins at `from`, or `from` if the slash there is a division. */
  const endOfPattern = (from: number): number => {
    if (!/(?:[(,=:[!&|?{};+>]|\breturn|^)\s*$/.test(source.slice(Math.max(0, from - 40), from))) return from;
    const pattern = /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//.exec(source.slice(from, from + 2000));
    return pattern ? from + pattern[0].length - 1 : from;
  };
  readCode();
  return literals;
}

/** Returns the names that a WITH in this SQL text defines. In the statement, such a name does not mean the table of the same name. */
function readCteNames(sql: string): Set<string> {
  const pattern =
    /(?:\bWITH(?:\s+RECURSIVE)?|,|§)\s*([a-z_]+)\s*(?:\([\w\s,]*\)\s*)?AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(/g;
  return new Set([...sql.matchAll(pattern)].flatMap(([, name]) => name ?? []));
}

const withoutSqlComments = (sql: string): string => sql.replace(/--.*$/gm, '').replace(/\/\*[\s\S]*?\*\//g, '');

/** Words that end a list of tables. */
const endsTables =
  /^(?:WHERE|GROUP|ORDER|HAVING|WINDOW|LIMIT|OFFSET|FETCH|FOR|UNION|EXCEPT|INTERSECT|RETURNING|SELECT|SET|VALUES|WHEN|ON|;)$/;

/**
 * Returns the names of the tables that a statement reads, also in subqueries: names after FROM, JOIN and USING, and after a comma in
 * the list of a FROM. Leaves out the names of common table expressions and functions, and the table of DELETE FROM. Returns `inserted`
 * for a name that the code inserts.
 */
export function readTables(text: string): string[] {
  const sql = withoutSqlComments(text);
  const ctes = readCteNames(sql);
  const words = sql.match(/'(?:[^']|'')*'|"[^"]*"|§|\w+|\S/g) ?? [];
  const tables: string[] = [];
  /**
   * One entry for the statement and one for each open bracket. `expects`: the next name at this depth is a table. `inList`: the name
   * after a comma is a table.
   */
  const levels = [{ expects: false, inList: false }];
  for (const [at, word] of words.entries()) {
    const level = levels[levels.length - 1] ?? { expects: false, inList: false };
    if (word === '(') {
      // A bracket can enclose joined tables: FROM (a JOIN b ON …).
      levels.push({ expects: level.expects, inList: level.expects });
      level.expects = false;
    } else if (word === ')') {
      if (levels.length > 1) levels.pop();
    } else if (word === 'FROM' || word === 'USING' || word === 'JOIN') {
      level.expects = words[at - 1] !== 'DELETE' && words[at - 1] !== 'DISTINCT';
      level.inList = level.expects;
    } else if (endsTables.test(word)) {
      level.expects = false;
      level.inList = word === 'ON' && level.inList;
    } else if (word === ',') level.expects = level.inList;
    else if (level.expects && word !== 'ONLY' && word !== 'LATERAL') {
      level.expects = false;
      const next = words[at + 1];
      if (next !== '(' && next !== '.' && !ctes.has(word) && /^(?:[a-z_]+|§)$/.test(word)) tables.push(word);
    }
  }
  return tables;
}

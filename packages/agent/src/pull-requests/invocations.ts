/** One program and its arguments. */
export type Invocation = readonly string[];

const shells: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'zsh']);
/** Words that a command line may have before the name of the program. */
const prefixes: ReadonlySet<string> = new Set([
  'sudo',
  'env',
  'time',
  'exec',
  'command',
  'nohup',
  'if',
  'then',
  'else',
  'do',
  'while',
  'until',
  '!',
]);
const maxDepth = 3;

/** Returns the programs that a shell script calls, as far as the text shows them. Parses quotes, but does not expand variables. */
export function invocationsOf(script: string, depth = 0): Invocation[] {
  return splitScript(script).flatMap((words) => unwrap(words, depth));
}

/**
 * Returns the programs that a command line calls. If the program is a shell that gets a script, these are the programs that the script
 * calls.
 */
export function unwrap(words: readonly string[], depth = 0): Invocation[] {
  const start = words.findIndex((word) => !prefixes.has(word) && !/^\w+=/.test(word));
  const [program, ...rest] = start === -1 ? [] : words.slice(start);
  if (program === undefined) return [];
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (!shells.has(name)) return [[name, ...rest]];
  const flag = rest.findIndex((word) => /^-\w*c$/.test(word));
  const script = flag === -1 ? undefined : rest[flag + 1];
  return script === undefined || depth >= maxDepth ? [] : invocationsOf(script, depth + 1);
}

function splitScript(script: string): string[][] {
  const commands: string[][] = [[]];
  let word: string | undefined;
  let quote = '';
  const endWord = () => {
    if (word !== undefined) commands.at(-1)?.push(word);
    word = undefined;
  };
  for (let at = 0; at < script.length; at += 1) {
    const char = script.charAt(at);
    if (quote !== "'" && char === '\\') {
      at += 1;
      const next = script.charAt(at);
      if (next !== '\n') word = (word ?? '') + next;
    } else if (quote !== '') {
      if (char === quote) quote = '';
      else word = (word ?? '') + char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= '';
    } else if (/[\n;&|(){}`]/.test(char)) {
      endWord();
      commands.push([]);
    } else if (/\s/.test(char)) {
      endWord();
    } else {
      word = (word ?? '') + char;
    }
  }
  endWord();
  return commands.filter((words) => words.length > 0);
}

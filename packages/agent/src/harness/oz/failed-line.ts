/** Finds the line at which the shell of a runbook block stopped. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fs } from '../../builtin-modules.ts';
import { type CommandOptions, runCommand } from '../../commands/run-command.ts';
import type { RunbookBlock } from './runbook-blocks.ts';

/** A line of a script. Numbers start at 1. */
export interface ScriptLine {
  readonly number: number;
  readonly text: string;
}

/** A script with marks that record the current line, and a function that returns the line at which the script stopped. */
export interface MarkedScript {
  readonly script: string;
  /** Returns the first line of the command that ended the script; undefined if no error ended the script. */
  failedLine(): Promise<ScriptLine | undefined>;
  remove(): Promise<void>;
}

/**
 * Prints the line numbers at which a top-level command of the script `$1` begins. The shell itself decides whether some lines are
 * complete commands: it parses a function with these lines as the body. If a here-document in the lines is still open, the closing
 * brace of the function becomes part of the here-document, and the function does not parse.
 */
const commandStarts = `"$0" -n -c "$1" 2>/dev/null || exit 0
printf '%s\\n' "$1" | {
  chunk= start=1 n=0
  while IFS= read -r line; do
    n=$((n + 1))
    chunk="$chunk$line
"
    case $line in *\\\\) continue ;; esac
    if (eval "f() { :
$chunk
}") 2>/dev/null; then
      echo "$start"
      start=$((n + 1)) chunk=
    fi
  done
}`;

/**
 * Shell features that do not work together with marks. The marks change the output of `set -x` and `set -v`, `$_` and `PIPESTATUS`,
 * and a `trap` of the script replaces the trap that the marks need.
 */
const readsShellState = /\bset\s+[-+]\w*[xv]|xtrace|verbose|PIPESTATUS|\$_\b|\$\{_\}|\btrap\b/;

/**
 * Maximum number of lines of a script that gets marks. The search for commands takes about half a millisecond for each line, and the script
 * must fit into one argument.
 */
const maxLines = 200;
const maxBytes = 64 * 1024;

const isCommand = (line: string): boolean => !/^\s*(#|$)/.test(line);

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`;

/**
 * Returns the script with a mark before each top-level command. The mark records the line of the command and keeps `$?` unchanged. Returns
 * undefined if the marks would change the effects of the script.
 */
export async function markLines(
  { shell, script }: Pick<RunbookBlock, 'shell' | 'script'>,
  options: Pick<CommandOptions, 'cwd' | 'env' | 'signal'>,
): Promise<MarkedScript | undefined> {
  const lines = script.split('\n');
  const commands = lines.flatMap((text, index) => (isCommand(text) ? [{ number: index + 1, text }] : []));
  const [first, second] = commands;
  if (first === undefined) return undefined;
  if (second === undefined) return { script, failedLine: async () => first, remove: async () => {} };
  if (lines.length > maxLines || Buffer.byteLength(script) > maxBytes || readsShellState.test(script)) return undefined;
  const found = await runCommand({ argv: [shell, '-c', commandStarts, shell, script], ...options });
  const starts = new Set(found.output.split('\n').map(Number));
  const marked = commands.filter(({ number }) => starts.has(number));
  if (found.exitCode !== 0 || marked.length === 0) return undefined;

  const folder = await fs.promises.mkdtemp(join(tmpdir(), 'runyard-line-'));
  const file = join(folder, 'line');
  const numbers = new Set(marked.map(({ number }) => number));
  const onExit = `[ $? = 0 ] || printf %s "$__runyard_at" >${quoted(file)} || :`;
  const noting = `__runyard_line() { __runyard_status=$?; __runyard_at=$1; return "$__runyard_status"; }; trap ${quoted(onExit)} EXIT; `;
  const body = lines.map((text, index) =>
    numbers.has(index + 1) ? `__runyard_line ${index + 1} && :; ${text}` : text,
  );
  return {
    script: noting + body.join('\n'),
    failedLine: async () => {
      const noted = await fs.promises.readFile(file, 'utf8').catch(() => '');
      return marked.find(({ number }) => String(number) === noted);
    },
    remove: () => fs.promises.rm(folder, { recursive: true, force: true }),
  };
}

export interface RunbookBlock {
  shell: 'sh' | 'bash';
  script: string;
  continueOnError: boolean;
}

const shells: Readonly<Record<string, RunbookBlock['shell']>> = { sh: 'sh', shell: 'sh', bash: 'bash' };

/** A fenced code block of a Markdown text. `info`: the words after the opening fence. */
interface FencedBlock {
  readonly info: string;
  readonly text: string;
}

/** Returns the fenced code blocks of a Markdown text, in order (CommonMark 0.31, 4.5 fenced code blocks). `onLine` gets the other lines. */
function fencedBlocks(
  prompt: string,
  onLine: (line: string, blocks: readonly FencedBlock[]) => void = () => {},
): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let fence: { mark: string; indent: number; info: string; lines: string[] } | undefined;
  const close = () => {
    if (fence !== undefined) blocks.push({ info: fence.info, text: fence.lines.join('\n') });
    fence = undefined;
  };
  for (const line of prompt.split(/\r?\n/)) {
    if (fence === undefined) {
      const opening = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/.exec(line);
      if (opening)
        fence = { indent: opening[1]?.length ?? 0, mark: opening[2] ?? '', info: (opening[3] ?? '').trim(), lines: [] };
      else onLine(line, blocks);
      continue;
    }
    const closing = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1];
    if (closing !== undefined && closing[0] === fence.mark[0] && closing.length >= fence.mark.length) close();
    else fence.lines.push(line.replace(new RegExp(`^ {0,${fence.indent}}`), ''));
  }
  close();
  return blocks;
}

/**
 * Returns the fenced `sh`, `shell` and `bash` blocks of a Markdown text, in order. If `continue-on-error` follows the language of a block,
 * the runbook continues when that block fails. The HTML comment `<!-- continue-on-error -->` before the first block has this effect for all
 * blocks.
 */
export function runbookBlocks(prompt: string): RunbookBlock[] {
  let allContinue = false;
  const fenced = fencedBlocks(prompt, (line, before) => {
    if (/^\s*<!--\s*continue-on-error\s*-->\s*$/.test(line) && before.flatMap(shellBlock).length === 0)
      allContinue = true;
  });
  return fenced.flatMap(shellBlock).map((block) => (allContinue ? { ...block, continueOnError: true } : block));
}

/** Returns the shell block in a list; an empty list for a block in another language, or without text. */
function shellBlock({ info, text }: FencedBlock): RunbookBlock[] {
  const [language = '', ...words] = info.split(/\s+/);
  const shell = shells[language.toLowerCase()];
  if (shell === undefined || text.trim() === '') return [];
  return [{ shell, script: text, continueOnError: words.includes('continue-on-error') }];
}

/** Returns the text of the last fenced block ```` ```json result ```` of a Markdown text; undefined if there is none. */
export const resultBlock = (prompt: string): string | undefined =>
  fencedBlocks(prompt).findLast(({ info }) => /^json\s+result$/i.test(info))?.text;

/** Returns the blocks as a Markdown text that `runbookBlocks` reads as the same blocks. */
export function blocksAsMarkdown(blocks: readonly RunbookBlock[]): string {
  return blocks
    .map(({ shell, script, continueOnError }) => {
      const longest = Math.max(0, ...[...script.matchAll(/`+/g)].map(([mark]) => mark.length));
      const fence = '`'.repeat(Math.max(3, longest + 1));
      return `${fence}${shell}${continueOnError ? ' continue-on-error' : ''}\n${script}\n${fence}`;
    })
    .join('\n\n');
}

export interface RunbookBlock {
  shell: 'sh' | 'bash';
  script: string;
  continueOnError: boolean;
}

const shells: Readonly<Record<string, RunbookBlock['shell']>> = { sh: 'sh', shell: 'sh', bash: 'bash' };

/**
 * Returns the fenced `sh`, `shell` and `bash` blocks of a Markdown text, in order (CommonMark 0.31, 4.5 fenced code blocks).
 * If `continue-on-error` follows the language of a block, the runbook continues when that block fails. The HTML comment `<!--
 * continue-on-error -->` before the first block has this effect for all blocks.
 */
export function runbookBlocks(prompt: string): RunbookBlock[] {
  const blocks: RunbookBlock[] = [];
  let fence: { mark: string; indent: number; info: string; lines: string[] } | undefined;
  let allContinue = false;

  const close = () => {
    if (fence === undefined) return;
    const [language = '', ...words] = fence.info.split(/\s+/);
    const shell = shells[language.toLowerCase()];
    const script = fence.lines.join('\n');
    if (shell !== undefined && script.trim() !== '') {
      blocks.push({ shell, script, continueOnError: allContinue || words.includes('continue-on-error') });
    }
    fence = undefined;
  };

  for (const line of prompt.split(/\r?\n/)) {
    if (fence === undefined) {
      const opening = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/.exec(line);
      if (opening)
        fence = { indent: opening[1]?.length ?? 0, mark: opening[2] ?? '', info: (opening[3] ?? '').trim(), lines: [] };
      else if (blocks.length === 0 && /^\s*<!--\s*continue-on-error\s*-->\s*$/.test(line)) allContinue = true;
      continue;
    }
    const closing = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1];
    if (closing !== undefined && closing[0] === fence.mark[0] && closing.length >= fence.mark.length) close();
    else fence.lines.push(line.replace(new RegExp(`^ {0,${fence.indent}}`), ''));
  }
  close();
  return blocks;
}

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

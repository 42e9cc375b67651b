import type { Colours } from '../live/colours.ts';

/** What doctor found about one thing. */
export interface Finding {
  readonly name: string;
  /** `bad`: no run can work. `note`: a run works, something is less than it could be. `fact`: neither. */
  readonly level: 'good' | 'fact' | 'note' | 'bad';
  readonly detail: string;
  /** How to mend it, as commands or settings. */
  readonly mend?: string;
}

export function renderFindings(findings: readonly Finding[], colours: Colours): string {
  const width = Math.max(...findings.map((finding) => finding.name.length));
  const marks = { good: colours.green('✓'), fact: colours.dim('·'), note: colours.yellow('!'), bad: colours.red('✗') };
  const lines: string[] = [];
  const indent = ' '.repeat(width + 6);
  for (const finding of findings) {
    lines.push(
      `  ${marks[finding.level]} ${colours.bold(finding.name.padEnd(width))}  ${finding.detail.replaceAll('\n', `\n${indent}`)}`,
    );
    if (finding.mend) lines.push(`${indent}${colours.dim('→')} ${finding.mend.replaceAll('\n', `\n${indent}  `)}`);
  }
  return `${lines.join('\n')}\n`;
}

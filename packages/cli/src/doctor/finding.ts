import type { Colours } from '../terminal/colours.ts';

/** A finding of doctor about one part of the installation. */
export interface Finding {
  readonly name: string;
  /** `bad`: no run can work. `note`: runs work, but something could be better. `fact`: information only. */
  readonly level: 'good' | 'fact' | 'note' | 'bad';
  readonly detail: string;
  /** Commands or settings that fix the problem. */
  readonly fix?: string;
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
    if (finding.fix) lines.push(`${indent}${colours.dim('→')} ${finding.fix.replaceAll('\n', `\n${indent}  `)}`);
  }
  return `${lines.join('\n')}\n`;
}

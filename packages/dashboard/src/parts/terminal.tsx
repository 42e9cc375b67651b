/** The output of commands. The output may be hostile: only colour, weight, underline, inverse and carriage returns have an effect. */

import { visibleText } from '@runyard/contract/wire/visible';
import Anser from 'anser';
import { type ReactNode, useMemo, useState } from 'react';
import { CodeBlock, CodeFoot, Text } from './blocks.tsx';
import styles from './code.module.css';
import { Button } from './controls.tsx';
import { CopyButton } from './copy.tsx';
import { countText } from './format.ts';
import { usePrinted } from './printing.ts';

/** Number of lines at the end of an output that are shown before a click on "Show all". */
const firstLines = 20;
/** Maximum number of lines that are shown after a click on "Show all". */
const mostLines = 5_000;

const esc = '\u001b';
/**
 * Matches all control sequences except colours: links and titles (OSC), strings (DCS, PM, APC, SOS), cursor movements (CSI), and all
 * others.
 */
const sequences = new RegExp(
  `${esc}\\][^\\u0007${esc}]*(?:\\u0007|${esc}\\\\|$)|${esc}[PX^_][^${esc}]*(?:${esc}\\\\|$)|${esc}\\[[0-?]*[ -/]*(?!m)[@-~]|${esc}(?!\\[)[ -/]*[0-~]?`,
  'g',
);

/**
 * Returns the output without control sequences other than colours. If a line has carriage returns, keeps only the text that stays visible
 * in a terminal.
 */
export function cleanOutput(text: string): string {
  return text
    .replace(sequences, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => (line.includes('\r') ? (line.replace(/\r+$/, '').split('\r').at(-1) ?? '') : line))
    .join('\n');
}

const colours: Readonly<Record<string, string | undefined>> = {
  'ansi-black': styles.dim,
  'ansi-red': styles.red,
  'ansi-green': styles.green,
  'ansi-yellow': styles.yellow,
  'ansi-blue': styles.blue,
  'ansi-magenta': styles.magenta,
  'ansi-cyan': styles.blue,
  'ansi-white': '',
};

/** Returns the classes of a piece of output. All colours become one of the colours of the page. */
function classOf({ fg, decorations }: Anser.AnserJsonEntry): string {
  const names: (string | undefined)[] = [
    colours[(fg ?? '').replace('-bright', '').replace('ansi-bright', 'ansi')] ?? '',
  ];
  if (fg === 'ansi-bright-black' || decorations.includes('dim')) names.push(styles.dim);
  if (decorations.includes('bold')) names.push(styles.bold);
  if (decorations.includes('underline')) names.push(styles.underline);
  if (decorations.includes('reverse')) names.push(styles.inverse);
  return names.filter(Boolean).join(' ');
}

/** Returns the nodes of an output with its colours. */
export function coloured(text: string): ReactNode[] {
  return Anser.ansiToJson(text, { json: true, use_classes: true, remove_empty: true }).map((entry, index) => {
    const content = visibleText(entry.content);
    const className = classOf(entry);
    return className === '' ? (
      content
    ) : (
      <span key={index} className={className} data-colour={entry.fg?.replace('ansi-', '')}>
        {content}
      </span>
    );
  });
}

/** Shows the last lines of a command's output, and the whole output on request. */
export function Terminal({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const lines = useMemo(() => cleanOutput(text).replace(/\n$/, '').split('\n'), [text]);
  const isPrinted = usePrinted();
  const count = isWhole || isPrinted ? mostLines : firstLines;
  const shown = useMemo(() => coloured(lines.slice(-count).join('\n')), [lines, count]);
  return (
    <CodeBlock data-part="terminal">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the output */}
      <pre tabIndex={0}>{shown}</pre>
      <CodeFoot>
        {lines.length > count ? `last ${count} of ${countText(lines.length, 'line')}` : countText(lines.length, 'line')}
        {lines.length > firstLines && (
          <Button kind="ghost" small onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show the end' : 'Show all'}
          </Button>
        )}
        <Text right />
        <CopyButton
          text={() => cleanOutput(text).replace(new RegExp(`${esc}\\[[0-9;:]*m`, 'g'), '')}
          what="Copy output"
        />
      </CodeFoot>
    </CodeBlock>
  );
}

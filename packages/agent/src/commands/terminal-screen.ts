import { type LeftOut, type OutputWindow, outputWindow } from './output-window.ts';

/**
 * Collects the text that a terminal shows for an output. The raw output is not used, because it contains every redraw of a progress bar.
 */
export interface TerminalScreen {
  /** Takes the next part of the output. */
  push(text: string): void;
  /** Returns the head and tail of the screen's text, and the size of the part between them. Do not call `push` afterwards. */
  end(): { readonly text: string; readonly leftOut: LeftOut };
}

/** The cursor can move up by this many lines. Lines further up do not change any more. */
const reachableLines = 100;
/** The number of characters at the beginning of a line that the cursor can reach. A real terminal breaks lines after fewer characters. */
const reachableColumns = 4_096;
/** If an incomplete control sequence has more characters than this, it counts as plain text. */
const maxSequence = 4_096;

/** The parts of an output: plain text, control sequences (ECMA-48 5.4), terminal strings (5.6), other escapes, control characters. */
const parts = new RegExp(
  [
    '[^\\u0000-\\u001f\\u007f]+',
    '\\u001b\\[(?<parameters>[0-?]*)[ -/]*(?<command>[@-~])',
    '\\u001b[\\]P^_X][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)',
    '\\u001b[ -/]*[0-OQ-WYZ\\\\`-~]',
    '[\\u0000-\\u001f\\u007f]',
  ].join('|'),
  'y',
);
/** Matches an incomplete sequence at the end of a chunk. */
const openSequence = new RegExp(
  ['\\[[0-?]*[ -/]*', '[\\]P^_X][^\\u0007\\u001b]*\\u001b?', '[ -/]*'].map((rest) => `^\\u001b${rest}$`).join('|'),
);

/** A line of the screen. `length` is its number of characters. */
interface Row {
  text: string;
  length: number;
}

const charactersOf = (text: string): number => {
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count -= 1;
  return count;
};

/** Makes the lines of a screen, with a cursor. Lines that the cursor cannot reach any more go to the window. */
function openLines(window: OutputWindow) {
  let rows: Row[] = [{ text: '', length: 0 }];
  const cursor = { row: 0, column: 0 };

  const current = (): Row => {
    while (rows.length <= cursor.row) rows.push({ text: '', length: 0 });
    return rows[cursor.row] as Row;
  };

  /** Replaces `count` characters of the line at the cursor by `text`. */
  function replace(line: Row, count: number, text: string): void {
    const cells = Array.from(line.text);
    const before = cells.slice(0, cursor.column).join('') + ' '.repeat(Math.max(0, cursor.column - cells.length));
    // A terminal does not show spaces at the end of a line.
    line.text = (before + text + cells.slice(cursor.column + count).join('')).trimEnd();
    line.length = charactersOf(line.text);
  }

  function print(text: string): void {
    const line = current();
    const length = charactersOf(text);
    if (cursor.column === line.length) {
      line.text += text;
      line.length += length;
    } else {
      replace(line, length, text);
    }
    cursor.column += length;
    if (line.length <= reachableColumns) return;
    if (cursor.row < rows.length - 1) {
      line.text = Array.from(line.text).slice(0, reachableColumns).join('');
      line.length = reachableColumns;
      cursor.column = reachableColumns;
      return;
    }
    // The cursor cannot go back to the beginning of a line that is this long.
    settle(rows.length - 1);
    window.push(Buffer.from(line.text));
    clear();
  }

  function clear(): void {
    rows = [{ text: '', length: 0 }];
    cursor.row = 0;
    cursor.column = 0;
  }

  /** Moves the first lines from the screen to the window, because they do not change any more. */
  function settle(count: number): void {
    if (count <= 0) return;
    const lines = rows.splice(0, count).map(({ text }) => `${text}\n`);
    window.push(Buffer.from(lines.join('')));
    cursor.row = Math.max(0, cursor.row - count);
  }

  function nextLine(): void {
    cursor.row += 1;
    cursor.column = 0;
    current();
    if (rows.length > 2 * reachableLines) settle(rows.length - reachableLines);
  }

  function erase(from: number, to: number): void {
    const line = current();
    const cells = Array.from(line.text).map((cell, index) => (index >= from && index < to ? ' ' : cell));
    line.text = cells.join('').trimEnd();
    line.length = charactersOf(line.text);
  }

  return {
    cursor,
    current,
    replace,
    print,
    nextLine,
    erase,
    clear,
    eraseBelow: () => {
      rows.length = cursor.row + 1;
    },
    lastRow: () => rows.length - 1,
    text: () => rows.map(({ text }) => text).join('\n'),
  };
}

type Lines = ReturnType<typeof openLines>;

/** Executes a control sequence that moves the cursor or erases characters. */
function control(lines: Lines, parameters: string, command: string): void {
  const { cursor } = lines;
  const [first = 0, second = 0] = parameters.split(';').map((each) => Math.min(Number.parseInt(each, 10) || 0, 9_999));
  const count = Math.max(first, 1);
  switch (command) {
    case 'A':
    case 'F':
      cursor.row = Math.max(0, cursor.row - count);
      break;
    case 'B':
    case 'E':
      cursor.row = Math.min(lines.lastRow(), cursor.row + count);
      break;
    case 'C':
      cursor.column = Math.min(cursor.column + count, reachableColumns);
      break;
    case 'D':
      cursor.column = Math.max(0, cursor.column - count);
      break;
    case 'G':
      cursor.column = Math.min(count - 1, reachableColumns);
      break;
    case 'H':
    case 'f':
      cursor.row = Math.min(lines.lastRow(), count - 1);
      cursor.column = Math.min(Math.max(second, 1) - 1, reachableColumns);
      break;
    case 'J':
      if (first === 0) {
        lines.erase(cursor.column, Number.POSITIVE_INFINITY);
        lines.eraseBelow();
      } else if (first === 2 || first === 3) lines.clear();
      break;
    case 'K':
      lines.erase(first === 0 ? cursor.column : 0, first === 1 ? cursor.column + 1 : Number.POSITIVE_INFINITY);
      break;
    case 'P':
      lines.replace(lines.current(), count, '');
      break;
  }
  if (command === 'E' || command === 'F') cursor.column = 0;
}

function character(lines: Lines, found: string): void {
  const { cursor } = lines;
  if (found === '\n' || found === '\v' || found === '\f') lines.nextLine();
  else if (found === '\r') cursor.column = 0;
  else if (found === '\b') cursor.column = Math.max(0, cursor.column - 1);
  else if (found === '\t') {
    if (cursor.column === lines.current().length) lines.print(found);
    else cursor.column += 8 - (cursor.column % 8);
  }
}

/**
 * Makes a screen of unlimited width that shows an output as a terminal does: carriage return, backspace and cursor movements overwrite, and
 * colours and titles do not count as text. Takes constant memory for output of any size.
 */
export function terminalScreen(window: OutputWindow = outputWindow()): TerminalScreen {
  const lines = openLines(window);
  let pending = '';

  function show(text: string): void {
    for (let at = 0; at < text.length; at = parts.lastIndex) {
      parts.lastIndex = at;
      const match = parts.exec(text);
      if (match === null) {
        parts.lastIndex = at + 1;
        continue;
      }
      const [found] = match;
      const { parameters = '', command } = match.groups ?? {};
      if (command !== undefined) control(lines, parameters, command);
      else if (found.length === 1 && found < ' ') character(lines, found);
      else if (found[0] !== '\u001b' && found !== '\u007f') lines.print(found);
    }
  }

  return {
    push(text) {
      const whole = pending + text;
      const last = whole.endsWith('\u001b') ? whole.length - 1 : whole.length;
      const escapes = [whole.lastIndexOf('\u001b', last - 1), last];
      const open = escapes.find((at) => at >= 0 && openSequence.test(whole.slice(at))) ?? whole.length;
      const isHeld = open < whole.length && whole.length - open <= maxSequence;
      pending = isHeld ? whole.slice(open) : '';
      show(isHeld ? whole.slice(0, open) : whole);
    },
    end() {
      show(pending);
      window.push(Buffer.from(lines.text()));
      return { text: window.text(), leftOut: window.leftOut };
    },
  };
}

import type { AnyMessage } from '@agentclientprotocol/sdk';

/**
 * Sources of regular expressions for output that a terminal does not show (ECMA-48 5.4, 5.6, 8.3.89): control characters and white
 * space, control sequences such as colours, strings such as the title of the terminal's window, and short escapes.
 */
const unseen = [
  '[\\s\\u0000-\\u001a\\u001c-\\u001f\\u007f]+',
  '\\u001b\\[[0-?]*[ -/]*[@-~]',
  '\\u001b[\\]P^_][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)',
  '\\u001b[=>78cM]',
  '\\u001b[()][0-9A-Z]',
];
const unseenPart = new RegExp(unseen.join('|'), 'y');

/** Returns the position of the first visible character from `start` on. Takes time in proportion to the text. */
function skipUnseen(text: string, start: number): number {
  for (let at = start; ; at = unseenPart.lastIndex) {
    unseenPart.lastIndex = at;
    if (!unseenPart.test(text)) return at;
  }
}

/**
 * Reads a line of a harness as a JSON-RPC message. Returns undefined if the line is not a message, because some agents print other text.
 * Loggers and terminal libraries of a harness may print invisible output before the message, such as a reset of the colour. The
 * returned `text` is only the JSON of the message.
 */
export function readMessageLine(line: string): { readonly message: AnyMessage; readonly text: string } | undefined {
  const start = skipUnseen(line, 0);
  const end = line.lastIndexOf('}') + 1;
  if (line[start] !== '{' || end === 0 || skipUnseen(line, end) < line.length) return undefined;
  const text = line.slice(start, end);
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'jsonrpc' in value
      ? { message: value as AnyMessage, text }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Colours of the CLI's output. Plain text if the output is not a terminal or `NO_COLOR` is set (no-color.org). */
export interface Colours {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const paint = (open: number, close: number) => (text: string) => `\u001b[${open}m${text}\u001b[${close}m`;
const plain = (text: string) => text;

export const noColours: Colours = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };

const ansiColours: Colours = {
  bold: paint(1, 22),
  dim: paint(2, 22),
  red: paint(31, 39),
  green: paint(32, 39),
  yellow: paint(33, 39),
  cyan: paint(36, 39),
};

export function coloursFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Colours {
  return stream.isTTY && !env.NO_COLOR && env.TERM !== 'dumb' ? ansiColours : noColours;
}

/** The lines of a run in a terminal. A text may arrive in pieces, so the last line may be unfinished. */
import type { Colours } from '../../../terminal/colours.ts';

export const margin = '  ';
export const outputMargin = '  │ ';

export interface Lines {
  /** Ends a line that is still open. */
  endLine(): string;
  line(text: string): string;
  dimLine(text: string): string;
  /**
   * Continues the text with this key. If the unfinished line belongs to another text, first begins a new line. Each line begins with the
   * margin.
   */
  flow(key: string, text: string, lineMargin: string): string;
  /** Returns whether the unfinished line belongs to the text with this key. */
  isOpen(key: string): boolean;
}

/** Creates the lines of a run. The functions return the text that the caller prints. */
export function createLines(colours: Colours): Lines {
  /** Key of the text to which the unfinished line belongs. `undefined` if the cursor is at the start of a line. */
  let openLine: string | undefined;

  const endLine = (): string => {
    const end = openLine === undefined ? '' : '\n';
    openLine = undefined;
    return end;
  };
  const line = (text: string): string => `${endLine()}${text}\n`;

  function flow(key: string, text: string, lineMargin: string): string {
    if (text === '') return '';
    let result = openLine === key ? '' : endLine();
    for (const part of text.split(/(?<=\n)/)) {
      if (openLine !== key) result += lineMargin;
      result += part;
      openLine = part.endsWith('\n') ? undefined : key;
    }
    return result;
  }

  return {
    endLine,
    line,
    dimLine: (text) => line(`${margin}${colours.dim(text)}`),
    flow,
    isOpen: (key) => openLine === key,
  };
}

import { joinHalves } from '@runyard/contract/wire/shorten';
import type { OutputWindow } from './output-window.ts';

/**
 * Puts an output into the window and emits the text of the window in pieces. Emits the head while it arrives, and the remaining text when
 * the output ends.
 */
export function liveOutput(window: OutputWindow, emit: (text: string) => void) {
  // Joins the halves of a character that the end of the head split.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const halves = joinHalves();
  const say = (text: string) => {
    if (text !== '') emit(text);
  };
  const push = (text: string) => say(decoder.decode(window.push(Buffer.from(text)), { stream: true }));
  return {
    push: (text: string): void => push(halves.push(text)),
    end(): void {
      push(halves.end());
      say(window.truncated ? window.markAndTail() : decoder.decode(window.afterHead()));
    },
  };
}

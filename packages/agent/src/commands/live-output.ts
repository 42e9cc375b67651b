import { joinHalves } from '@runyard/contract/wire/shorten';
import type { OutputWindow } from './output-window.ts';

/**
 * Adds an output to the window, and emits the text of the window in pieces: first the head, while the output arrives, and then the
 * remaining text, when the output ends. `onBytes` gets all bytes.
 */
export function liveOutput(
  window: OutputWindow,
  emit: (text: string) => void,
  onBytes: (bytes: Buffer) => void = () => {},
) {
  // Joins the two parts of a character that is split between the end of the head and the text after the head.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const halves = joinHalves();
  const say = (text: string) => {
    if (text !== '') emit(text);
  };
  const push = (text: string) => {
    const bytes = Buffer.from(text);
    onBytes(bytes);
    say(decoder.decode(window.push(bytes), { stream: true }));
  };
  return {
    push: (text: string): void => push(halves.push(text)),
    end(): void {
      push(halves.end());
      say(window.truncated ? window.markAndTail() : decoder.decode(window.afterHead()));
    },
  };
}

import { withoutNul } from './output-window.ts';

/**
 * Emits the first `maxBytes` of an output as text while it comes. The result of the command has the end of the output. The streaming
 * decoder joins characters that two chunks share, and replaces invalid bytes.
 */
export function liveOutput(emit: (text: string) => void, maxBytes = 64 * 1024) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let emittedBytes = 0;
  return {
    push(chunk: Buffer): void {
      if (emittedBytes >= maxBytes) return;
      const part = chunk.subarray(0, maxBytes - emittedBytes);
      emittedBytes += part.length;
      const text = withoutNul(decoder.decode(part, { stream: true }));
      if (text !== '') emit(text);
    },
    end(): void {
      // The rest of a character that the limit split is not invalid output.
      if (emittedBytes >= maxBytes) return;
      const rest = decoder.decode();
      if (rest !== '') emit(rest);
    },
  };
}

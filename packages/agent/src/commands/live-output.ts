import { withoutNul } from './output-window.ts';

/**
 * Turns chunks of output into text as they come, until `maxBytes` were passed on: what is behind that is in the
 * result's tail. Characters that two chunks share and invalid bytes are handled by the streaming decoder.
 */
export function liveOutput(emit: (text: string) => void, maxBytes = 64 * 1024) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let passed = 0;
  return {
    push(chunk: Buffer): void {
      if (passed >= maxBytes) return;
      const part = chunk.subarray(0, maxBytes - passed);
      passed += part.length;
      const text = withoutNul(decoder.decode(part, { stream: true }));
      if (text !== '') emit(text);
    },
    end(): void {
      // The rest of a character that the limit split is not invalid output.
      if (passed >= maxBytes) return;
      const rest = decoder.decode();
      if (rest !== '') emit(rest);
    },
  };
}

import type { ContentBlock, PromptResponse } from '@agentclientprotocol/sdk';

/** Maximum number of times that the driver continues a turn that the harness ended because of a denial. */
const maxDenials = 20;

/** A denial of a person. Without a text, the message about the denial becomes the next turn. */
export interface Denial {
  readonly text: string | undefined;
}

/**
 * Sends the prompt. Codex ends its turn after a denial: sends the text of each denial as a further prompt. Returns `denied` if the message
 * about a denial becomes the next turn.
 */
export async function sendAndContinue(
  send: (prompt: ContentBlock[]) => Promise<PromptResponse>,
  prompt: ContentBlock[],
  takeDenial: () => Denial | undefined,
): Promise<PromptResponse | 'denied'> {
  let response = await send(prompt);
  for (let count = 0; response.stopReason === 'cancelled' && count < maxDenials; count += 1) {
    const denial = takeDenial();
    if (denial === undefined) break;
    if (denial.text === undefined) return 'denied';
    response = await send([{ type: 'text', text: denial.text }]);
  }
  return response;
}

/**
 * Returns the prompt in a form that the harness does not treat as one of its own commands. Harnesses recognise a command by a slash at the
 * start of the prompt, and Gemini CLI also by a dollar sign. A harness answers its own commands without a model and ends the turn as a
 * success, so "/status gives 500, fix it" would not reach the model.
 */
export function plainPrompt(blocks: readonly ContentBlock[]): ContentBlock[] {
  const at = blocks.findIndex(({ type }) => type === 'text');
  return blocks.map((block, index) =>
    index === at && block.type === 'text' && /^\s*[/$]/.test(block.text)
      ? { ...block, text: `The user says:\n\n${block.text}` }
      : block,
  );
}

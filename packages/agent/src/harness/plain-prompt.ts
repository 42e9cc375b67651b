import type { ContentBlock } from '@agentclientprotocol/sdk';

/**
 * Returns a prompt that a program cannot take for a command of its own. Programs look for a slash at the start of the prompt, Gemini CLI
 * also for a dollar sign. They answer such a command themselves and end the turn as if it had succeeded, so "/status gives 500, mend it"
 * would not reach the model.
 */
export function plainPrompt(blocks: readonly ContentBlock[]): ContentBlock[] {
  const at = blocks.findIndex(({ type }) => type === 'text');
  return blocks.map((block, index) =>
    index === at && block.type === 'text' && /^\s*[/$]/.test(block.text)
      ? { ...block, text: `The user says:\n\n${block.text}` }
      : block,
  );
}

import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentModel } from '@runyard/contract/agent-protocol';
import type { ImageType } from './image-type.ts';

/** An image that came with a prompt. Its file is in the workspace, whether a model sees it or not. */
export interface PromptImage {
  path: string;
  type: ImageType;
  bytes: Buffer;
}

/** What may be sent. Sizes are of the base64 text: that is what travels and what providers measure. */
export interface ImageLimits {
  types: ReadonlySet<ImageType>;
  maxEach: number;
  /** Of one prompt, and of all prompts that a conversation still carries. */
  maxTogether: number;
}

const mb = 1024 * 1024;
const all: ReadonlySet<ImageType> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/**
 * Anthropic refuses images over 5 MB and requests over 32 MB; Google requests over 20 MB, and gif; the Responses API takes
 * 50 MB in a request. What an endpoint of one's own takes is not known.
 */
const byProtocol: Readonly<Record<AgentModel['protocol'], ImageLimits>> = {
  anthropic: { types: all, maxEach: 5 * mb, maxTogether: 20 * mb },
  'openai-responses': { types: all, maxEach: 20 * mb, maxTogether: 20 * mb },
  google: { types: new Set(['image/png', 'image/jpeg', 'image/webp']), maxEach: 14 * mb, maxTogether: 14 * mb },
  'openai-compatible': { types: all, maxEach: 20 * mb, maxTogether: 20 * mb },
};

/** Limits of a model; without one those of the strictest size, for harnesses that choose their model themselves. */
export function imageLimits(model: AgentModel | undefined): ImageLimits {
  return byProtocol[model?.protocol ?? 'anthropic'];
}

/** Why an image is not sent, for the run's record. */
export interface ImageNotSent {
  path: string;
  reason: string;
}

/** The images of a prompt as content for a harness that takes images (`sees`), and those that it does not get. */
export function imageContent(
  images: readonly PromptImage[],
  sees: boolean,
  limits: ImageLimits,
): { blocks: ContentBlock[]; notSent: ImageNotSent[] } {
  const blocks: ContentBlock[] = [];
  const notSent: ImageNotSent[] = [];
  let together = 0;
  for (const { path, type, bytes } of images) {
    const size = Math.ceil(bytes.length / 3) * 4;
    const reason = !sees
      ? 'The model or harness does not take images.'
      : !limits.types.has(type)
        ? `The model does not take ${type}.`
        : size > limits.maxEach
          ? `The image has ${size} bytes as base64; the model takes ${limits.maxEach}.`
          : together + size > limits.maxTogether
            ? `The images of the prompt have more than the ${limits.maxTogether} bytes as base64 that the model takes together.`
            : undefined;
    if (reason !== undefined) {
      notSent.push({ path, reason });
      continue;
    }
    together += size;
    blocks.push({ type: 'image', mimeType: type, data: bytes.toString('base64') });
  }
  return { blocks, notSent };
}

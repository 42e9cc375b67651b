import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { ImageType } from './image-type.ts';

/** An image of a prompt. The workspace has the file of the image even if the model does not get the image. */
export interface PromptImage {
  path: string;
  type: ImageType;
  bytes: Buffer;
}

/** Limits for the images of a prompt. A size is the length of the image as base64 text, because providers measure this text. */
export interface ImageLimits {
  types: ReadonlySet<ImageType>;
  maxEach: number;
  /** Limit for the images of one prompt, and for all images of a conversation. */
  maxTogether: number;
}

const mb = 1024 * 1024;
const allTypes: ReadonlySet<ImageType> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/**
 * Anthropic refuses images over 5 MB and requests over 32 MB. Google refuses requests over 20 MB, and images of the type gif. The
 * Responses API of OpenAI accepts requests of up to 50 MB. The limits of a self-hosted endpoint are not known.
 */
const byProtocol: Readonly<Record<AgentModel['protocol'], ImageLimits>> = {
  anthropic: { types: allTypes, maxEach: 5 * mb, maxTogether: 20 * mb },
  'openai-responses': { types: allTypes, maxEach: 20 * mb, maxTogether: 20 * mb },
  google: { types: new Set(['image/png', 'image/jpeg', 'image/webp']), maxEach: 14 * mb, maxTogether: 14 * mb },
  'openai-compatible': { types: allTypes, maxEach: 20 * mb, maxTogether: 20 * mb },
};

/**
 * Returns the limits for images of a model. If the run names no model because its harness chooses one itself, returns the limits of
 * Anthropic.
 */
export function imageLimits(model: AgentModel | undefined): ImageLimits {
  return byProtocol[model?.protocol ?? 'anthropic'];
}

/** An image that the model does not get, with the reason. The conversation of the run gets a notice about the image. */
export interface ImageNotSent {
  path: string;
  reason: string;
}

/**
 * Returns the images of a prompt as ACP content, and separately the images that the model does not get. `takesImages` is true if the
 * harness accepts images.
 */
export function imageContent(
  images: readonly PromptImage[],
  takesImages: boolean,
  limits: ImageLimits,
): { blocks: ContentBlock[]; notSent: ImageNotSent[] } {
  const blocks: ContentBlock[] = [];
  const notSent: ImageNotSent[] = [];
  let together = 0;
  for (const { path, type, bytes } of images) {
    const size = Math.ceil(bytes.length / 3) * 4;
    const reason = !takesImages
      ? 'The model or harness does not accept images.'
      : !limits.types.has(type)
        ? `The model does not accept ${type}.`
        : size > limits.maxEach
          ? `The image has ${size} bytes as base64; the model accepts ${limits.maxEach}.`
          : together + size > limits.maxTogether
            ? `The images of the prompt have more than the ${limits.maxTogether} bytes as base64 that the model accepts together.`
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

import type { ModelMessage, UserContent } from 'ai';

export interface TurnImage {
  mimeType: string;
  /** base64 */
  data: string;
}

/** Returns the content of a user's message: its text, then its images. */
export function userContent(text: string, images: readonly TurnImage[]): UserContent {
  if (images.length === 0) return text;
  return [
    { type: 'text', text },
    ...images.map(({ mimeType, data }) => ({
      type: 'file' as const,
      mediaType: mimeType,
      data: { type: 'data' as const, data },
    })),
  ];
}

/**
 * Returns a separate message with the images of tool results, because some providers accept no images inside a result. A text in this
 * message says that the images are data from tools. Returns undefined if there are no images.
 */
export function imagesOfResults(
  results: ReadonlyMap<string, { readonly images?: readonly TurnImage[] }>,
): ModelMessage | undefined {
  const images = [...results.values()].flatMap((result) => result.images ?? []);
  if (images.length === 0) return undefined;
  return { role: 'user', content: userContent('[Images of the tool results above. They are data.]', images) };
}

const leftOutNote = '[An image that was here is left out: the conversation has grown. Its file is in the workspace.]';

/**
 * Replaces the oldest images by a note if all images together take more than `maxBytes` as base64 text, because each request contains all
 * images.
 */
export function forgetOldImages(messages: ModelMessage[], maxBytes: number): void {
  let keptBytes = 0;
  for (const message of messages.toReversed()) {
    if (message.role !== 'user' || typeof message.content === 'string') continue;
    message.content = message.content.toReversed().map((part) => {
      const size = imageSize(part);
      if (size === 0 || keptBytes + size <= maxBytes) {
        keptBytes += size;
        return part;
      }
      keptBytes = maxBytes;
      return { type: 'text', text: leftOutNote };
    });
    message.content.reverse();
  }
}

function imageSize(part: Exclude<UserContent, string>[number]): number {
  if (part.type !== 'file' || typeof part.data !== 'object' || !('type' in part.data)) return 0;
  return part.data.type === 'data' && typeof part.data.data === 'string' ? part.data.data.length : 0;
}

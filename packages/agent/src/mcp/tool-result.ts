import { shorten } from '@runyard/contract/wire/shorten';
import { cutText } from '../commands/output-window.ts';

/** An image in the result of a tool. */
export interface McpImage {
  readonly mimeType: string;
  /** base64 */
  readonly data: string;
}

/** The result of a tool, with limited size. */
export interface McpResult {
  readonly text: string;
  readonly images: readonly McpImage[];
  readonly failed: boolean;
}

/** Maximum size of the text of one result. */
const maxTextBytes = 32 * 1024;
const maxImages = 4;

/**
 * Returns the result of `tools/call`, shortened to the limits. Replaces content that is neither text nor an image by a description of the
 * content.
 */
export function toolResult(answer: {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
}): McpResult {
  const texts: string[] = [];
  const images: McpImage[] = [];
  for (const block of answer.content ?? []) {
    const { type, text, data, mimeType, resource, uri } = (block ?? {}) as Record<string, unknown>;
    const inner = (resource ?? {}) as Record<string, unknown>;
    if (type === 'text' && typeof text === 'string') texts.push(text);
    else if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string' && images.length < maxImages)
      images.push({ mimeType, data });
    else if (type === 'resource' && typeof inner.text === 'string')
      texts.push(`[resource ${shorten(String(inner.uri), 500)}]\n${inner.text}`);
    else texts.push(`[${shorten(`${type} ${uri ?? inner.uri ?? mimeType ?? ''}`.trim(), 500)} is left out]`);
  }
  if (texts.length === 0 && images.length === 0 && answer.structuredContent !== undefined)
    texts.push(JSON.stringify(answer.structuredContent));
  const { text } = cutText(texts.join('\n'), maxTextBytes);
  return { text, images, failed: answer.isError === true };
}

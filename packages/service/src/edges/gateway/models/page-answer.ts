/** Detects web pages in place of answers of a model: a sign-in page, the page of a broken proxy, or an address without an API. */
import type { IncomingMessage } from 'node:http';
import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import { endpointOf, providerKinds } from '../../../team/models/providers.ts';
import type { Exchange } from './exchange.ts';
import { hasFirstByte } from './pass-on.ts';

/** Only the beginning of a page is read, because the title is there. */
export const maxPageBytes = 16 * 1024;
export const pageMs = 5_000;
const maxTitleChars = 100;

/** Matches the beginning of a model's answer. The media type is not enough, because some small servers stream events as `text/html`. */
const answerStart = /^\s*(?:data:|event:|:|[[{])/;

/** Returns whether an answer is a web page. Leaves all bytes of the answer in the stream. `read`: the body, if the caller has already read
 * it. */
export async function isPage(response: IncomingMessage, read?: Buffer): Promise<boolean> {
  if (!/^\s*text\/html\b/i.test(response.headers['content-type'] ?? '')) return false;
  if (read !== undefined) return !answerStart.test(read.toString('utf8', 0, 100));
  if (response.headers['content-encoding'] !== undefined || !(await hasFirstByte(response, pageMs))) return true;
  const first = response.read() as Buffer | null;
  if (first === null) return true;
  response.unshift(first);
  return !answerStart.test(first.toString('utf8', 0, 100));
}

/** Returns the title of a page in quotes, as one harmless line; empty if it has none. */
function titleOf(page: Buffer): string {
  const title = /<title[^>]*>([^<]*)/i.exec(page.toString('utf8'))?.[1] ?? '';
  const line = title.replace(/[\p{C}\s"]+/gu, ' ').trim();
  return line === '' ? '' : ` "${line.slice(0, maxTitleChars)}"`;
}

/** Returns the error that the sandbox gets in place of a web page. If the provider's status is below 400, a header tells clients not to
 * repeat the request, because they would get the page again. */
export function pageAnswer(
  { target }: Pick<Exchange, 'target'>,
  status: number,
  page: Buffer,
): { readonly status: number; readonly message: string; readonly headers: Readonly<Record<string, string>> } {
  const { urlSetting } = providerKinds[target.provider];
  const { key } = target.upstream;
  const title = titleOf(page);
  const visibleTitle = key !== undefined && title.includes(key) ? '' : title;
  return {
    status: status >= 400 ? status : 502,
    message: `the model provider at ${endpointOf(target.upstream)} answered ${status} with a web page${visibleTitle} in place of an answer of a model; an administrator must check ${urlSetting}`,
    headers: status < 400 ? { [gatewayErrorHeader]: 'resource_unavailable' } : {},
  };
}

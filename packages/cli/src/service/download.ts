/** Downloads the bytes at an address that the service names. */
import type { LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { hostOf, makeAddressRules } from '@runyard/system/address-rules';
import { proxyOf } from '@runyard/system/outgoing/outgoing';
import { Failure } from '../exits/failure.ts';
import { harmlessLine } from '../terminal/harmless.ts';

const isPublic = (address: string): boolean => makeAddressRules([])(address) === 'public';

/** Longest time in milliseconds without a byte of the answer. */
const patienceMs = 60_000;

/** The download may succeed if it is tried again. */
export class BrokenDownload extends Failure {}

interface Download {
  readonly bytes: Readable;
  /** Position of the first byte: the one that was asked for, or 0 if the server sends the whole file. */
  readonly from: number;
}

/** How a download is sent. `from`: position of the first byte. `mayRedirect`: the service may lead to another address once. */
interface DownloadOptions {
  readonly from?: number;
  readonly mayRedirect?: boolean;
}

/**
 * Returns the bytes at an address of the service `origin` or of its bucket. A service on the internet could name an address of this
 * machine or of the network around it, so its address for a download must be on the internet too, and must use TLS if the service does.
 * Sends no key. Follows one redirect, because the service leads to its bucket. @throws BrokenDownload if the server does not answer or has
 * a temporary problem, and another Failure if the address is refused or has no such bytes
 */
export async function download(
  origin: string,
  address: string,
  { from = 0, mayRedirect = true }: DownloadOptions = {},
): Promise<Download> {
  const url = URL.parse(address);
  const service = new URL(origin);
  const refused = (why: string) => new Failure(`the service names ${harmlessLine(address)} for the download, ${why}`);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) throw refused('which is no address of the web');
  if (url.protocol === 'http:' && service.protocol === 'https:') throw refused('which does not use TLS');
  const mayBePrivate = url.origin === service.origin || !(await isOfInternet(service));
  const usable = async (host: string, options: LookupOptions) => {
    const found = await lookup(host, { ...options, all: true });
    const allowed = mayBePrivate ? found : found.filter((each) => isPublic(each.address));
    if (allowed.length === 0) throw refused('an address inside of this network');
    return allowed;
  };
  const resolve: LookupFunction = (host, options, done) => {
    usable(host, options).then(
      (found) => (options.all ? done(null, found) : done(null, found[0]?.address ?? '', found[0]?.family)),
      (error: Error) => done(error, ''),
    );
  };
  if (!mayBePrivate && isIP(hostOf(url)) && !isPublic(hostOf(url))) throw refused('an address inside of this network');
  const headers = from === 0 ? {} : { range: `bytes=${from}-` };
  const response = await new Promise<IncomingMessage>((answered, failed) => {
    const send = url.protocol === 'https:' ? requestSecure : requestPlain;
    const request = send(url, { lookup: resolve, headers }, answered);
    const name = harmlessLine(url.origin);
    request.setTimeout(patienceMs, () => request.destroy(new BrokenDownload(`${name} sends nothing`)));
    request.on('error', (error) => failed(error instanceof Failure ? error : new BrokenDownload(error.message))).end();
  });
  const { statusCode = 0, headers: answer } = response;
  if (statusCode === 200) return { bytes: response, from: 0 };
  if (statusCode === 206 && answer['content-range']?.startsWith(`bytes ${from}-`)) return { bytes: response, from };
  response.destroy();
  if ([302, 307].includes(statusCode) && answer.location !== undefined && mayRedirect)
    return await download(origin, URL.parse(answer.location, url.href)?.href ?? '', { from, mayRedirect: false });
  const ProblemKind = statusCode >= 500 || statusCode === 429 ? BrokenDownload : Failure;
  throw new ProblemKind(`the download of ${harmlessLine(url.origin)} was answered with ${statusCode}`);
}

/** Returns whether the service has an address on the internet. */
async function isOfInternet(service: URL): Promise<boolean> {
  // A company's proxy leads to the internet, and this machine need not know the address.
  if (proxyOf(service) !== undefined) return true;
  const found = await lookup(hostOf(service), { all: true }).catch(() => []);
  return found.some(({ address }) => isPublic(address));
}

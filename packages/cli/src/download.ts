/** Downloads the bytes at an address that the service names. */
import type { LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { hostOf, makeAddressRules } from '@runyard/system/address-rules';
import { proxyOf } from '@runyard/system/outgoing/outgoing';
import { Failure } from './failure.ts';
import { harmlessLine } from './live/harmless.ts';

const isPublic = (address: string): boolean => makeAddressRules([])(address) === 'public';

/** Longest time in milliseconds without a byte of the answer. */
const patienceMs = 60_000;

/**
 * Returns the bytes at an address of the service `origin` or of its bucket. A service on the internet could name an address of this
 * machine or of the network around it, so its address for a download must be on the internet too, and must use TLS if the service does.
 * Sends no key and follows no redirect. @throws Failure if the address is refused or answers with another status than 200
 */
export async function download(origin: string, address: string): Promise<Readable> {
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
  return await new Promise((answered, failed) => {
    const send = url.protocol === 'https:' ? requestSecure : requestPlain;
    const request = send(url, { lookup: resolve }, (response) => {
      if (response.statusCode === 200) return answered(response);
      response.destroy();
      failed(new Failure(`the download of ${harmlessLine(url.origin)} was answered with ${response.statusCode}`));
    });
    request.setTimeout(patienceMs, () => request.destroy(new Failure(`${url.origin} sends nothing`)));
    request.on('error', failed).end();
  });
}

/** Returns whether the service has an address on the internet. */
async function isOfInternet(service: URL): Promise<boolean> {
  // A company's proxy leads to the internet, and this machine need not know the address.
  if (proxyOf(service) !== undefined) return true;
  const found = await lookup(hostOf(service), { all: true }).catch(() => []);
  return found.some(({ address }) => isPublic(address));
}

/** Asks a code host about objects of Git LFS, and moves their bytes. */
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { type AddressRules, makeAddressRules } from '@runyard/system/address-rules';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { z } from 'zod';
import { findAddresses, lookupOf, type Resolve } from '../../../platform/check-address.ts';
import { checkUrl } from '../../../platform/check-url.ts';
import { reasonOf } from '../../../runs/subscriptions/send.ts';
import { askCodeHost } from '../../../team/code-hosts/ask.ts';
import { basicAuthorization, type CodeHostCredential } from '../../../team/code-hosts/credential.ts';
import { withPath } from '../../../team/code-hosts/url.ts';
import type { LfsObject } from './lfs-request.ts';

/** Maximum number of objects in one request. Git LFS asks for 100. */
export const maxBatchObjects = 100;
const maxAnswerBytes = 1024 * 1024;
const batchMs = 30_000;
const connectMs = 10_000;
/** Longest time without a byte of an object. */
export const silenceMs = 120_000;
const maxRedirects = 3;

const Action = z.object({ href: z.string(), header: z.record(z.string(), z.string()).optional() });
type Action = z.infer<typeof Action>;

const Answer = z.object({
  objects: z
    .array(
      z.object({
        oid: z.string(),
        size: z.number(),
        actions: z.object({ download: Action, upload: Action, verify: Action }).partial().optional(),
        error: z.object({ code: z.number(), message: z.string() }).optional(),
      }),
    )
    .max(maxBatchObjects),
});
export type BatchAnswer = z.infer<typeof Answer>;

export type Operation = 'download' | 'upload';

/** A fault whose message is for the agent. The message contains no address of an object, because these addresses are signed. */
export class LfsFault extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface LfsHost {
  /** Clone URL of the repository. */
  readonly base: URL;
  readonly credential: CodeHostCredential | undefined;
}

export interface LfsHostDeps {
  /** Value of RUNYARD_ALLOW_PRIVATE_NETWORKS. */
  readonly allowedNetworks: readonly string[];
  readonly resolve: Resolve;
}

const contentType = 'application/vnd.git-lfs+json';

/** Asks the code host where the objects are. Throws `LfsFault`. */
export async function askBatch(
  { base, credential }: LfsHost,
  operation: Operation,
  objects: readonly LfsObject[],
  signal: AbortSignal,
): Promise<BatchAnswer> {
  const body = Buffer.from(JSON.stringify({ operation, transfers: ['basic'], objects }));
  const answer = await askCodeHost({
    url: withPath(base, '/info/lfs/objects/batch'),
    method: 'POST',
    headers: {
      accept: contentType,
      'content-type': contentType,
      'content-length': String(body.byteLength),
      ...(credential ? { authorization: basicAuthorization(credential) } : {}),
    },
    body,
    signal: AbortSignal.any([signal, AbortSignal.timeout(batchMs)]),
    maxBytes: maxAnswerBytes,
  }).catch(() => {
    throw new LfsFault(502, 'The code host did not answer a request of Git LFS in time.');
  });
  if (answer.status === 401 || answer.status === 403)
    throw new LfsFault(403, 'The code host refuses files of Git LFS to this run.');
  if (answer.status !== 200)
    throw new LfsFault(answer.status === 404 ? 404 : 502, `The code host answered ${answer.status} to Git LFS.`);
  try {
    return Answer.parse(JSON.parse(answer.bytes.toString('utf8')));
  } catch {
    throw new LfsFault(502, 'The code host gave an answer that is not of Git LFS.');
  }
}

/** Returns the one object of an answer. Throws `LfsFault` if the host has an error for it. */
export async function askObject(
  host: LfsHost,
  operation: Operation,
  object: LfsObject,
  signal: AbortSignal,
): Promise<NonNullable<BatchAnswer['objects'][number]['actions']>> {
  const { objects } = await askBatch(host, operation, [object], signal);
  const found = objects.find(({ oid }) => oid === object.oid);
  if (found?.error !== undefined || found === undefined)
    throw new LfsFault(found?.error?.code === 404 ? 404 : 422, 'The code host does not have this file of Git LFS.');
  return found.actions ?? {};
}

/** Headers that a code host may choose for the transfer of an object. The others belong to the connection. */
const isAllowedHeader = (name: string): boolean =>
  !/^(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer|keep-alive|proxy-.*)$/i.test(name);

interface Transfer {
  readonly method: 'GET' | 'PUT' | 'POST';
  readonly action: Action;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readable | Buffer;
  readonly signal: AbortSignal;
}

/**
 * Sends a request to an address that the code host named: to the code host itself, or to a public address. The answer to a download may
 * redirect; another origin does not get the headers of the action. Throws `LfsFault`.
 */
export async function transfer(deps: LfsHostDeps, { base }: LfsHost, sent: Transfer): Promise<IncomingMessage> {
  const rules = makeAddressRules(deps.allowedNetworks);
  let url = URL.parse(sent.action.href);
  const first = url?.origin;
  for (let hop = 0; url !== null; hop += 1) {
    const isOwn = url.origin === base.origin;
    if (!isOwn && checkUrl(url.href, rules, deps.allowedNetworks.length > 0) !== null)
      throw new LfsFault(502, `The code host names ${url.host} for files of Git LFS, which is not a public address.`);
    const headers = url.origin === first ? allowedHeaders(sent) : {};
    const response = await exchange({ ...deps, rules, isOwn }, url, { ...sent, headers });
    const status = response.statusCode ?? 502;
    if (status < 300 || status > 399 || sent.method !== 'GET' || hop === maxRedirects) return response;
    response.destroy();
    url = URL.parse(response.headers.location ?? '', url.href);
  }
  throw new LfsFault(502, 'The code host names an address for files of Git LFS that is not a URL.');
}

const allowedHeaders = ({ action, headers = {} }: Transfer): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(Object.entries(action.header ?? {}).filter(([name]) => isAllowedHeader(name))),
  ...headers,
});

async function exchange(
  { rules, resolve, isOwn }: Pick<LfsHostDeps, 'resolve'> & { readonly rules: AddressRules; readonly isOwn: boolean },
  url: URL,
  { method, headers = {}, body, signal }: Transfer,
): Promise<IncomingMessage> {
  try {
    const connecting = AbortSignal.any([signal, AbortSignal.timeout(connectMs)]);
    // The operator chose the code host, so it may have a private address.
    const addresses = await findAddresses(url, { rules: isOwn ? () => 'allowed' : rules, resolve }, connecting);
    return await new Promise((done, reject) => {
      const request = (url.protocol === 'https:' ? https : http).request(url, {
        method,
        headers: { 'user-agent': 'runyard', 'accept-encoding': 'identity', ...headers },
        agent: agentFor(url),
        lookup: lookupOf(addresses),
        signal,
      });
      request.setTimeout(silenceMs, () => request.destroy(new Error('timeout')));
      request.once('response', (response) => {
        response.on('error', () => {});
        done(response);
      });
      request.on('error', reject);
      if (body === undefined || Buffer.isBuffer(body)) request.end(body);
      else {
        body.once('error', (error) => request.destroy(error));
        body.pipe(request);
      }
    });
  } catch (error) {
    throw new LfsFault(502, `The store of files of Git LFS at ${url.host} failed: ${reasonOf(error)}.`);
  }
}

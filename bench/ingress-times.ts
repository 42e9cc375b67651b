/**
 * Measures how long the ingress takes to answer senders that guess a URL or a credential. The times must not reveal more about a guess
 * than the status of the answer.
 */
import { createHmac, randomBytes } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import pg from 'pg';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { percentile, report } from './report.ts';

const turns = Number(process.env.BENCH_TURNS ?? 600);
/** After this number of turns, the benchmark resets the counts of refused credentials, because a webhook allows only 60 of them a minute. */
const turnsOfBudget = 10;

/** A kind of guess. The benchmark compares each kind of a group with the first kind of the group. */
interface Guess {
  readonly group: string;
  readonly name: string;
  readonly status: number;
  send(): { readonly url: string; readonly headers: Readonly<Record<string, string>> };
  readonly times: number[];
}

interface Webhook {
  readonly uid: string;
  readonly url: string;
  readonly secret: string;
}

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const client = new pg.Client({ connectionString: embedded.url });
await client.connect();
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const body = JSON.stringify({ action: 'failed', padding: 'It fails in the linker. '.repeat(40) });
const hmac = (secret: string): string => createHmac('sha256', secret).update(body).digest('hex');

/** Returns the text with a wrong last character. */
const misspelt = (text: string): string => text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
/** Returns random letters and digits, as many as the text has. */
const unlike = (text: string): string =>
  randomBytes(text.length)
    .toString('base64url')
    .replaceAll(/[^a-z0-9]/gi, '0')
    .slice(0, text.length);

/** Returns the milliseconds until the answer has arrived. */
function timed({ send, status }: Guess): Promise<number> {
  const { url, headers } = send();
  return new Promise((resolve, reject) => {
    const at = performance.now();
    const request = http.request(
      url,
      { agent, method: 'POST', headers: { 'content-length': Buffer.byteLength(body), ...headers } },
      (response) => {
        response.resume().once('end', () => {
          if (response.statusCode === status) resolve(performance.now() - at);
          else reject(new Error(`${url} answered ${response.statusCode} in place of ${status}`));
        });
      },
    );
    request.once('error', reject);
    request.end(body);
  });
}

/**
 * Compares each time of `one` with each time of `other`. Returns the share of these pairs in which the time of `other` is longer; 0.5
 * means that the times reveal nothing.
 */
function shareOfSlower(one: readonly number[], other: readonly number[]): number {
  const slower = other.reduce((sum, time) => sum + one.filter((each) => each < time).length, 0);
  return slower / (one.length * other.length);
}

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

try {
  const { uid: factory } = await system.call<{ uid: string }>('POST', '/factory', { name: 'F' }, 201);
  const create = async (members: object): Promise<Webhook> => {
    const secret = 'a-secret-of-the-sender-0';
    const route = `/factory/${factory}/webhooks`;
    const createdWebhook = await system.call<Omit<Webhook, 'secret'>>('POST', route, { name: 'W', ...members }, 201);
    // The answer contains the secret only if the service made the secret.
    return { secret, ...createdWebhook };
  };
  const [known, disabled, deleted] = [await create({}), await create({}), await create({})];
  await system.call('POST', `/factory/${factory}/webhooks/${disabled.uid}/disable`);
  await system.call('DELETE', `/factory/${factory}/webhooks/${deleted.uid}`);
  const withToken = await create({});
  const inUrl = await create({ auth_mode: 'url_token' });
  const signed = await create({
    auth_mode: 'signature',
    signature_scheme: 'github',
    secret: 'a-secret-of-the-sender-0',
  });
  const urlOf = (uid: string) => known.url.replace(known.uid, uid);
  const guess = (group: string, status: number, name: string, send: Guess['send']): Guess => ({
    group,
    name,
    status,
    send,
    times: [],
  });
  const ofUrl = (name: string, url: () => string) => guess('URL', 404, name, () => ({ url: url(), headers: {} }));
  const bearer = (name: string, token: () => string) =>
    guess('bearer token', 401, name, () => ({ url: withToken.url, headers: { authorization: `Bearer ${token()}` } }));
  const inPath = (name: string, token: () => string) =>
    guess('token in the URL', 401, name, () => ({ url: inUrl.url.replace(inUrl.secret, token()), headers: {} }));
  const signature = (name: string, hex: () => string) =>
    guess('signature', 401, name, () => ({ url: signed.url, headers: { 'x-hub-signature-256': `sha256=${hex()}` } }));
  const right = hmac(signed.secret);
  const guesses: Guess[] = [
    ofUrl('random UID', () => urlOf(unlike(known.uid))),
    ofUrl('UID of a webhook, last letter wrong', () => urlOf(misspelt(known.uid))),
    ofUrl('random UID, with a token in the URL', () => `${urlOf(unlike(known.uid))}/${unlike(inUrl.secret)}`),
    ofUrl('disabled webhook', () => disabled.url),
    ofUrl('deleted webhook', () => deleted.url),
    bearer('random', () => unlike(withToken.secret)),
    bearer('last letter wrong', () => misspelt(withToken.secret)),
    bearer('one letter', () => 'x'),
    bearer('right one of another webhook', () => known.secret),
    inPath('random', () => unlike(inUrl.secret)),
    inPath('last letter wrong', () => misspelt(inUrl.secret)),
    inPath('one letter', () => 'x'),
    signature('random', () => randomBytes(32).toString('hex')),
    signature('last digit wrong', () => misspelt(right)),
    signature('of another secret', () => hmac('another-secret-of-24-chars')),
  ];
  for (let turn = -turnsOfBudget; turn < turns; turn += 1) {
    if (turn % turnsOfBudget === 0) await client.query(`UPDATE webhooks SET recent_rejected = '{}'`);
    for (const each of shuffled(guesses)) {
      const time = await timed(each);
      if (turn >= 0) each.times.push(time);
    }
  }
  const firstOf = ({ group }: Guess): Guess | undefined => guesses.find((each) => each.group === group);
  const largest = Math.max(
    ...guesses.map((each) => Math.abs(shareOfSlower(firstOf(each)?.times ?? [], each.times) - 0.5)),
  );
  report(
    'Answer times to senders that guess',
    `${turns} requests of 1 KB of each kind of guess. All requests are sent one after the other on one connection; each turn has one request of each kind, in a new random order. One service process with the embedded PostgreSQL answers all requests and has no other work. For the last column, each request of the row's kind is compared with each request of the first kind with the same guess. The column shows the share of these pairs in which the row's kind is slower: 0.5 means that the times reveal nothing. Largest distance from 0.5: **${largest.toFixed(3)}**. If the times of two kinds have the same distribution, this distance is below ${(3 * Math.sqrt(1 / (6 * turns))).toFixed(3)} in 997 of 1,000 comparisons. The status alone already says whether a URL has an enabled webhook: 401 or 404, as the API documents. UIDs have 131 random bits.`,
    ['guess', 'kind', 'status', 'p10 ms', 'median ms', 'p90 ms', 'slower than the first'],
    guesses.map((each) => [
      each.group,
      each.name,
      each.status,
      ...[0.1, 0.5, 0.9].map((share) => percentile(each.times, share).toFixed(2)),
      firstOf(each) === each ? '' : shareOfSlower(firstOf(each)?.times ?? [], each.times).toFixed(3),
    ]),
  );
} finally {
  agent.destroy();
  await client.end();
  await system.stop();
}

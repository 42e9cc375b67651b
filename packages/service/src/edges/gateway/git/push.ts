/** Reads the beginning of a push before any byte is forwarded, and decides whether the push is allowed. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable, Transform } from 'node:stream';
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxBranchesOfPush } from '@runyard/contract/limits';
import { AttemptOver } from '../../../runs/executions/run-tokens/attempt.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import { type Commits, readLeadingCommits } from '../../../runs/repositories/pushes/leading-commits.ts';
import { isNone, type PushHead } from '../../../runs/repositories/pushes/read-commands.ts';
import type { BegunPush, Push } from '../../../runs/repositories/pushes/record.ts';
import { type HostReport, watchReport, writeReport } from '../../../runs/repositories/pushes/report-status.ts';
import { TooManyChanges } from '../../../team/access/audit/record.ts';
import type { ChosenCredential, UsableCredential } from '../../../team/code-hosts/credential.ts';
import { decoded } from '../headers.ts';
import { type FollowedBranches, readBranchesOfPush, watchFollowed } from './followed-branches.ts';
import type { GitGatewayDeps } from './git.ts';
import { peekable, readHead } from './peekable.ts';
import { PushStopped, whileAllowed } from './while-allowed.ts';

/** The rules and the record of pushes. */
export interface PushRecord extends FollowedBranches {
  /** Returns patterns of branch names. The run of the execution cannot push to these branches. */
  protectedBranchesOf(executionId: string): Promise<readonly string[]>;
  /** Decides whether a push is allowed, and records the decision. Throws `AttemptOver`, `TooManyChanges`. */
  begin(session: RunSession, push: Push): Promise<BegunPush>;
  /** Waits for a person's decision about a push. Returns false if the push was denied; undefined if there is no answer yet. */
  answered(session: RunSession, id: string, signal: AbortSignal): Promise<boolean | undefined>;
  /** Returns whether a person has to approve pushes of the run to this repository. */
  areHeld(session: RunSession, repository: Repository): Promise<boolean>;
  /** Records an upload of Git LFS. */
  recordUpload(
    session: RunSession,
    repository: Repository,
    object: { readonly oid: string; readonly size: number },
  ): Promise<void>;
  /** Returns why the run may change no repository at this moment, such as the mode `plan`; undefined: it may. */
  whyRepositoriesStay(executionId: string): Promise<string | undefined>;
  /** Returns false if the run has ended or is stopping. */
  isAtWork(session: RunSession): Promise<boolean>;
  /** Records the answer of the code host. */
  end(session: RunSession, push: Push, numbers: readonly number[], report: HostReport | null): Promise<void>;
}

interface PushRequest {
  readonly session: RunSession;
  readonly repository: Repository;
  /** Clone URL. */
  readonly base: URL;
  readonly chosen: UsableCredential;
  readonly request: IncomingMessage;
  /** Largest push, bytes. */
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** The gateway's own answer to a push that it does not forward. */
export interface AnsweredPush {
  readonly kind: 'answer';
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer | string;
  /** The reason for the log. */
  readonly why: string;
  /** True: a person has not decided about the push yet. */
  readonly isWaiting?: boolean;
}

/** A push that is forwarded to the code host. Exactly one of its functions is called, once. */
export interface ForwardedPush {
  readonly kind: 'forward';
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
  /** Forwards the bytes of the answer. Holds the last bytes back until the result is recorded. */
  watch(answer: Readable): Readable;
  /** Records that the code host gave no answer. `reason`: why the code host did not apply the push; absent: it may have applied the
   * push. */
  failed(reason?: string): Promise<void>;
  /** If the push was stopped at the limit or because its run is over, records the stop and returns the answer to git. */
  stopped(isTooLarge: boolean): Promise<AnsweredPush | undefined>;
}

/** The gateway looks for commits in the first `maxPeekedBytes` of the pack. */
const maxPeekedBytes = 1024 * 1024;
const resultType = 'application/x-git-receive-pack-result';

const inWords = (message: string): string => `${message.charAt(0).toLowerCase()}${message.slice(1).replace(/\.$/, '')}`;

/** Returns the answer to a push that is not forwarded. git prints the reason after each ref. */
function answerOf(
  capabilities: readonly string[],
  refused: Iterable<readonly [string, string]>,
  why: string,
  unpack?: string,
): AnsweredPush {
  const report = writeReport(capabilities, refused, unpack);
  return report === undefined
    ? {
        kind: 'answer',
        status: 403,
        contentType: 'text/plain; charset=utf-8',
        body: `The push is refused: ${why}.\n`,
        why,
      }
    : { kind: 'answer', status: 200, contentType: resultType, body: report, why };
}

const plain = (status: number, message: string): AnsweredPush => ({
  kind: 'answer',
  status,
  contentType: 'text/plain; charset=utf-8',
  body: `${message}\n`,
  why: message,
});

const runOver = 'the run has ended or is stopping';
const notAnswered =
  'a person has to approve this push, and has not answered yet: run the same git push again, or end the turn; the run continues with the answer';
const withdrawn = 'the run may not use the credential of this repository any more';

/**
 * The gateway reads at least this many bytes of a refused push, because git reads the answer only after it has sent everything. It reads at
 * most this many bytes of a compressed body, because 2 MB can decompress to 2 GB.
 */
const leastDiscardedBytes = 64 * 1024 * 1024;

/**
 * Reads the commands of a push, decides about them, and records the push. A refused push is read to its end, so that git reads the
 * answer.
 */
export async function admitPush(
  { pushes, bodies, credentialFor }: Pick<GitGatewayDeps, 'pushes' | 'bodies' | 'credentialFor'>,
  pushed: PushRequest,
): Promise<AnsweredPush | ForwardedPush> {
  const { session, repository, request, limit, signal } = pushed;
  const { teamId, executionId } = session;
  const place = await bodies.enter({ teamId, executionId }, maxPeekedBytes, signal);
  if (typeof place === 'string') return plain(503, 'The service handles too many pushes now. Push again later.');
  if (signal.aborted) place.release();
  else signal.addEventListener('abort', place.release, { once: true });
  const body = decoded(request);
  if (body === undefined) return plain(415, 'The push has a content encoding that the gateway does not know.');
  const peeked = peekable(body.body);

  const read = await readHead(peeked);
  const { capabilities } = read.kind === 'head' ? read.head : read;
  const commands = read.kind === 'head' ? read.head.commands : [];
  const discard = () => peeked.discard(body.changed ? leastDiscardedBytes : Math.max(limit, leastDiscardedBytes));
  const refuse = async (refusals: Iterable<readonly [string, string]>, why: string, unpack?: string) => {
    place.releaseBytes();
    await discard();
    return answerOf(capabilities, refusals, why, unpack);
  };
  const refuseAll = (why: string, unpack?: string) =>
    refuse(
      commands.map(({ ref }) => [ref, why]),
      why,
      unpack,
    );
  const tooLarge = `the push is larger than ${Math.floor(limit / 1_048_576)} MB`;
  const forward = (
    record: (report: HostReport | null) => Promise<void>,
    findStop: () => Promise<string | undefined>,
  ): ForwardedPush => {
    const { 'content-encoding': _coding, 'content-length': size, ...others } = request.headers;
    const headers = body.changed || size === undefined ? others : { ...others, 'content-length': size };
    const rejected = (why: string) => new Map(commands.map(({ ref }) => [ref, why]));
    place.releaseBytes();
    const rest = peeked.all();
    const pieces = commands.length === 0 ? rest : whileAllowed(rest, findStop);
    let stop: string | undefined;
    const sent = Readable.from(pieces, { objectMode: false }).once('error', (error) => {
      if (error instanceof PushStopped) stop = error.message;
    });
    return {
      kind: 'forward',
      headers,
      body: sent,
      watch: (answer) => withReport(answer, capabilities, record),
      failed: (reason) => record(reason === undefined ? null : rejected(reason)),
      stopped: async (isTooLarge) => {
        const why = isTooLarge ? tooLarge : stop;
        if (why === undefined) return undefined;
        // If a push has bytes after its pack, the code host may have received the whole pack before the run was over.
        await record(isTooLarge ? rejected(why) : null);
        await discard();
        return answerOf(capabilities, rejected(why), why, why);
      },
    };
  };

  if (read.kind !== 'head') {
    const why =
      read.kind === 'bad'
        ? read.message
        : `the list of refs is cut, or too long: a push can update at most ${maxBranchesOfPush} branches`;
    return await refuseAll(why, why);
  }
  if (Number(request.headers['content-length'] ?? 0) > limit) return await refuseAll(tooLarge, tooLarge);
  if (!(await endsInPack(read.head, peeked.read))) return await refuseAll('the list of refs is not followed by a pack');
  // A push without commands is a single flush packet, with which git asks whether it may push before it sends a large pack.
  if (commands.length === 0)
    return forward(
      async () => {},
      async () => undefined,
    );

  const protectedBranches = await pushes.protectedBranchesOf(executionId);
  const about = { repository, clone: pushed.base, chosen: pushed.chosen, signal };
  const followed = await watchFollowed(about, pushes);
  if (followed.kind !== 'followed') return await refuseAll(inWords(followed.message));
  const { followedBranches } = followed;
  const branches = await readBranchesOfPush(about, { protectedBranches, followedBranches }, commands);
  if (branches.kind !== 'branches') return await refuseAll(inWords(branches.message));
  const { defaultBranch, aliases } = branches;
  const commits = await commitsOf(read.head, peeked.read);
  const { hasOptions } = read.head;
  const rules = { hasOptions, protectedBranches, followedBranches, defaultBranch, aliases };
  const push: Push = { repository, commands, ...rules, commits };
  const idOf = (chosen: ChosenCredential) => (chosen.kind === 'credential' ? chosen.id : undefined);
  const isWithdrawn = async () => idOf(await credentialFor(session, repository)) !== idOf(pushed.chosen);
  const findStop = async () => {
    if (!(await pushes.isAtWork(session))) return runOver;
    return (await isWithdrawn()) ? withdrawn : await followed.findChange();
  };
  try {
    let begun = await pushes.begin(session, push);
    if (begun.kind === 'waiting') {
      const isApproved = await pushes.answered(session, begun.id, signal);
      if (isApproved === false) return await refuseAll('a person denied this push');
      if (isApproved === true) begun = await pushes.begin(session, push);
    }
    if (begun.kind === 'waiting') return { ...(await refuseAll(notAnswered)), isWaiting: true };
    if (begun.kind === 'refused') return await refuse(begun.refusals, [...begun.refusals.values()].join('; '));
    return forward((report) => pushes.end(session, push, begun.numbers, report), findStop);
  } catch (error) {
    if (error instanceof AttemptOver) return await refuseAll(runOver);
    if (error instanceof TooManyChanges) return await refuseAll('the limit of changes for today is reached');
    throw error;
  }
}

/**
 * Returns whether a pack or the end of the body follows the commands. After a lone flush packet, only the end is allowed. Otherwise a code
 * host could find capabilities in a push in which the gateway finds none, and could then read the bytes after the packet as push options.
 */
async function endsInPack({ commands, packAt }: PushHead, read: (bytes: number) => Promise<Buffer>): Promise<boolean> {
  const start = (await read(packAt + 4)).toString('latin1', packAt, packAt + 4);
  return start === '' || (start === 'PACK' && commands.length > 0);
}

/** Returns the commits of a push. Only the rules for existing branches need them. */
async function commitsOf({ commands, packAt }: PushHead, read: (bytes: number) => Promise<Buffer>): Promise<Commits> {
  const [first] = commands;
  if (first === undefined || commands.every(({ from, to }) => isNone(from) || isNone(to))) return new Map();
  const bytes = await read(packAt + maxPeekedBytes);
  return readLeadingCommits(bytes.subarray(packAt), first.to.length).commits;
}

function withReport(
  answer: Readable,
  capabilities: readonly string[],
  end: (report: HostReport | null) => Promise<void>,
): Readable {
  const watched = watchReport(capabilities);
  let isRecorded = false;
  const record = async (report: HostReport | null): Promise<void> => {
    if (isRecorded) return;
    isRecorded = true;
    await end(report);
  };
  const through = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      watched.add(chunk);
      done(null, chunk);
    },
    flush(done) {
      record(watched.result()).then(
        () => done(),
        (error: Error) => done(error),
      );
    },
    destroy(error, done) {
      record(watched.result()).then(
        () => done(error),
        (failed: Error) => done(failed),
      );
    },
  });
  answer.once('error', (error) => through.destroy(error));
  answer.once('close', () => {
    if (!answer.readableEnded) through.destroy(new Error('the answer was cut'));
  });
  return answer.pipe(through);
}

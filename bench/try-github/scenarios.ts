/** Scenarios: a person writes on GitHub, and the App must answer. `bin/try-github` runs them on GitHub, and a test on the fake. */
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../../test/support/system.ts';
import { type Ground, worksOn } from './ground.ts';
import type { Person } from './person.ts';

export interface Try {
  readonly ground: Pick<Ground, 'slug' | 'branch' | 'readCheckRuns'> & { readonly system: Pick<System, 'call'> };
  readonly person: Person;
  /** Begins the names of everything that this try writes. */
  readonly label: string;
  /** Pause between two looks at GitHub. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** An event may come a minute later, and a run takes its time. */
const longestMs = 5 * 60_000;

async function until<T>({ pauseMs, signal }: Try, what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endsAt = Date.now() + longestMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > endsAt) throw new Error(`${what} did not come within ${longestMs / 60_000} minutes`);
    await delay(pauseMs, undefined, { signal });
  }
}

interface Comment {
  readonly id: number;
  readonly body: string;
  readonly html_url: string;
  readonly user: { readonly login: string };
}

interface Place {
  readonly number: number;
  readonly html_url: string;
}

interface Answer extends Comment {
  readonly runId: string;
}

/** Waits for the App's comment that shows the result of a run and has this text. */
async function answerIn(of: Try, { number }: Place, text: string): Promise<Answer> {
  return await until(of, `the App's comment with the result`, async () => {
    const all = await of.person.ask<Comment[]>('GET', `/issues/${number}/comments?per_page=100`);
    const own = all.filter(({ user }) => user.login === `${of.ground.slug}[bot]`);
    if (own.length > 1) throw new Error(`the App wrote ${own.length} comments instead of one`);
    const [comment] = own;
    if (comment && /❌|⏹️/.test(comment.body)) throw new Error(`the run failed: ${comment.html_url}`);
    const runId = /\/runs\/([\da-f-]{36})/.exec(comment?.body ?? '')?.[1];
    if (!comment || !runId || !/✅ Done/.test(comment.body) || !comment.body.includes(text)) return undefined;
    return { ...comment, runId };
  });
}

/** Throws unless a command of the run has printed that it works on this commit. */
async function expectCommit({ ground }: Try, runId: string, sha: string): Promise<void> {
  const conversation = JSON.stringify(await ground.system.call('GET', `/agent/runs/${runId}/conversation`));
  if (!conversation.includes(`${worksOn} ${sha}`)) throw new Error(`the run did not work on the commit ${sha}`);
}

const bodyOf = ({ ground, label }: Try, wish: string): string =>
  `@${ground.slug} ${wish}\n\nbin/try-github of Runyard wrote this (${label}), and closes it at the end.`;

/** Values that a scenario gives to the later ones. */
interface Seen {
  issue?: Place;
  first?: Answer;
  pull?: { readonly runId: string; readonly sha: string };
}

/** Returns the newest commit of the default branch. */
async function newestCommit({ person, ground }: Try): Promise<string> {
  const path = `/git/ref/${encodeURIComponent(`heads/${ground.branch}`)}`;
  return (await person.ask<{ object: { sha: string } }>('GET', path)).object.sha;
}

async function mention(of: Try, seen: Seen): Promise<string> {
  const { person, label } = of;
  const issue = await person.ask<Place>('POST', '/issues', { title: `${label}: issue`, body: bodyOf(of, 'say hello') });
  person.closeLater(issue.html_url, 'PATCH', `/issues/${issue.number}`, { state: 'closed' });
  of.say(`opened ${issue.html_url}`);
  const first = await answerIn(of, issue, 'echo');
  await expectCommit(of, first.runId, await newestCommit(of));
  Object.assign(seen, { issue, first });
  return first.html_url;
}

async function reply(of: Try, { issue, first }: Seen): Promise<string> {
  if (!issue || !first) throw new Error('there is no answered issue');
  const command = `echo reply-to-${of.label}`;
  const body = `@${of.ground.slug} go on:\n\n\`\`\`sh\n${command}\n\`\`\``;
  await of.person.ask('POST', `/issues/${issue.number}/comments`, { body });
  const answer = await answerIn(of, issue, command);
  if (answer.id !== first.id || answer.runId !== first.runId) throw new Error('the reply did not continue the run');
  return answer.html_url;
}

async function pullRequest(of: Try, seen: Seen): Promise<string> {
  const { person, label } = of;
  await person.ask('POST', '/git/refs', { ref: `refs/heads/${label}`, sha: await newestCommit(of) });
  person.closeLater(`branch ${label}`, 'DELETE', `/git/refs/${encodeURIComponent(`heads/${label}`)}`);
  const content = Buffer.from(`${label}\n`).toString('base64');
  await person.ask('PUT', `/contents/${label}.txt`, { message: `Try ${label}`, content, branch: label });
  const pull = await person.ask<Place & { head: { sha: string } }>('POST', '/pulls', {
    title: `${label}: pull request`,
    head: label,
    base: of.ground.branch,
    body: bodyOf(of, 'name the commit'),
  });
  person.closeLater(pull.html_url, 'PATCH', `/issues/${pull.number}`, { state: 'closed' });
  of.say(`opened ${pull.html_url}`);
  const answer = await answerIn(of, pull, 'echo');
  await expectCommit(of, answer.runId, pull.head.sha);
  seen.pull = { runId: answer.runId, sha: pull.head.sha };
  return answer.html_url;
}

async function checkRun(of: Try, { pull }: Seen): Promise<string> {
  if (!pull) throw new Error('there is no answered pull request');
  return await until(of, 'the check run', async () => {
    const all = await of.ground.readCheckRuns(pull.sha);
    if (all === null) throw new NotTried('the App has no permission to write checks');
    const own = all.find(({ external_id: id }) => id === pull.runId);
    if (!own?.conclusion) return undefined;
    if (own.conclusion !== 'success') throw new Error(`the check run ended with ${own.conclusion}: ${own.html_url}`);
    return own.html_url ?? '';
  });
}

class NotTried extends Error {}

/** Each returns the address of what it has seen. */
const scenarios: readonly (readonly [name: string, run: (of: Try, seen: Seen) => Promise<string>])[] = [
  ['a mention in a new issue starts a run, and the App comments its result', mention],
  ['a reply with a mention continues the run, and the App edits its comment', reply],
  ['a mention in a pull request starts a run that works on its head', pullRequest],
  ['a check run on the head shows the run', checkRun],
];

/** Runs the scenarios, and closes what they have opened, also after a failure. Returns how many failed. */
export async function runScenarios(of: Try): Promise<number> {
  const { say, signal, person } = of;
  const seen: Seen = {};
  let failed = 0;
  try {
    for (const [name, run] of scenarios) {
      if (signal.aborted) break;
      try {
        say(`passed: ${name}: ${await run(of, seen)}`);
      } catch (error) {
        const isFailure = !(error instanceof NotTried);
        if (isFailure) failed += 1;
        const why = signal.aborted ? 'stopped' : (error as Error).message;
        say(`${isFailure ? 'FAILED' : 'not tried'}: ${name}: ${why}`);
      }
    }
  } finally {
    const left = await person.closeAll();
    failed += left.length;
    for (const each of left) say(`NOT CLOSED: ${each}`);
  }
  return failed;
}

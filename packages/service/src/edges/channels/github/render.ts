/** Writes the comment about a run, from the present state of the run. */
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { plainLine, sanitize } from './sanitize.ts';

export interface RenderedComment {
  readonly text: string;
  /** The request of the run that the comment shows; null: none. */
  readonly requestId: string | null;
}

/** Where the comment is written. */
export interface RenderPlace {
  /** Text that mentions the App. */
  readonly handle: string;
  /** Origin of the pages of GitHub. */
  readonly web: string;
  readonly baseUrl: string;
  /** True if only people with access to the repository read it. */
  readonly isPrivate: boolean;
}

const maxFinal = 40_000;
const maxTitle = 2_000;
const maxPullRequests = 10;

/** The words above the details, by the state of the run. */
function headingOf({ state }: RunItem): string {
  switch (state) {
    case 'QUEUED':
    case 'PENDING':
    case 'CLAIMED':
      return '⏳ Waiting for a free place.';
    case 'INPROGRESS':
      return '⚙️ Working on it.';
    case 'BLOCKED':
      return '✋ I need an answer.';
    case 'SUCCEEDED':
      return '✅ Done.';
    case 'FAILED':
      return '❌ This did not work.';
    case 'ERROR':
      return '❌ This could not be done.';
    case 'CANCELLED':
      return '⏹️ Stopped.';
  }
}

function questionOf({ blocked_on: asked }: RunItem, handle: string): string[] {
  if (!asked) return [];
  const title = sanitize(asked.title.slice(0, maxTitle));
  const options = (asked.options ?? []).slice(0, 20).map((option) => `- ${plainLine(option)}`);
  const how =
    asked.kind === 'permission'
      ? `Reply with \`${handle} approve\` or \`${handle} deny\`. The page of the run shows the whole action.`
      : `Reply in this thread, and mention \`${handle}\`.`;
  return [title, ...(options.length > 0 ? [options.join('\n')] : []), how];
}

/** The reason may name secrets, repositories and environments of the team, so only readers of a private repository see it. */
function failureOf({ state, status_message: status }: RunItem, { handle, isPrivate }: RenderPlace): string[] {
  if (state !== 'FAILED' && state !== 'ERROR' && state !== 'CANCELLED') return [];
  const why = isPrivate && status?.message ? [sanitize(status.message.slice(0, maxTitle))] : [];
  return [...why, `To try again, mention \`${handle}\` in a reply, and say what to do differently.`];
}

function resultOf({ final_message: final, result }: RunItem): string[] {
  if (final) return [sanitize(final.slice(0, maxFinal))];
  return result === undefined
    ? []
    : [
        sanitize(
          `\`\`\`json\n${JSON.stringify(result, null, 2).replaceAll('`', '\\u0060').slice(0, maxFinal)}\n\`\`\``,
        ),
      ];
}

/** Returns the lines about pull requests of the run. GitHub's own addresses have a form that cannot hide anything. */
function pullRequestsOf({ artifacts = [] }: RunItem, web: string): string[] {
  const urls = artifacts.flatMap((artifact) => (artifact.artifact_type === 'PULL_REQUEST' ? [artifact.data.url] : []));
  const safe = urls.filter((url) => url.startsWith(`${web}/`) && /^[\w:/.-]{1,300}$/.test(url));
  return safe.length === 0
    ? []
    : [
        [...new Set(safe)]
          .slice(0, maxPullRequests)
          .map((url) => `- ${url}`)
          .join('\n'),
      ];
}

const maxSteps = 20;

/** Returns the steps of the plan as a task list. `plan`: a plan of the Agent Client Protocol, or anything else that a harness has sent. */
function planOf(plan: unknown): string[] {
  const entries: unknown = Reflect.get(Object(plan), 'entries');
  const steps = (Array.isArray(entries) ? entries : []).flatMap((entry) => {
    const { content, status } = Object(entry);
    return typeof content === 'string' && content.trim() !== ''
      ? [`- [${status === 'completed' ? 'x' : ' '}] ${plainLine(content)}${status === 'in_progress' ? ' ⚙️' : ''}`]
      : [];
  });
  const more = steps.length > maxSteps ? [`- and ${steps.length - maxSteps} more`] : [];
  return steps.length === 0 ? [] : [[...steps.slice(0, maxSteps), ...more].join('\n')];
}

/** Returns the comment about a run, without secrets. The run and its plan have gone through the redactor. */
export function renderRun(run: RunItem, place: RenderPlace, plan?: unknown): RenderedComment {
  const { handle, web, baseUrl } = place;
  const isBlocked = run.state === 'BLOCKED';
  const parts = [
    `**${headingOf(run)}** [Page of the run](${baseUrl}/runs/${run.run_id})`,
    ...planOf(plan),
    ...(isBlocked ? questionOf(run, handle) : []),
    ...failureOf(run, place),
    ...(isTerminal(run.state) ? resultOf(run) : []),
    ...pullRequestsOf(run, web),
  ];
  return { text: parts.join('\n\n'), requestId: isBlocked ? (run.blocked_on?.request_id ?? null) : null };
}

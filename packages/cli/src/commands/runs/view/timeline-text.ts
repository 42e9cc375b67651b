import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { formatDuration } from '../../../terminal/amounts.ts';
import type { Colours } from '../../../terminal/colours.ts';
import { harmless, harmlessLine } from '../../../terminal/harmless.ts';
import { inputHint } from './actions.ts';
import { type Lines, margin, outputMargin } from './lines.ts';

/** A finished step of the setup, or a check that has ended. */
interface FinishedStep {
  readonly step_id: string;
  /** Kind of the step of the setup; `check` for a check. */
  readonly kind: string;
  readonly name: string;
  readonly duration_ms: number;
  readonly exit_code?: number | undefined;
  readonly output_tail?: string | undefined;
  readonly error?: string | undefined;
}

const labelOf = (kind: string): string => (kind === 'harness' || kind === 'check' ? kind : 'setup');

/** Returns a function that shows a finished step, once, although the agent and the timeline report it. */
export function showSteps({ line, flow }: Lines, colours: Colours): (event: FinishedStep) => string {
  const finishedSteps = new Set<string>();
  return (event) => {
    if (finishedSteps.has(event.step_id)) return '';
    finishedSteps.add(event.step_id);
    const failed = event.error !== undefined || (event.exit_code ?? 0) !== 0;
    const mark = failed ? colours.red('✗') : colours.green('✓');
    const exit = event.exit_code === undefined ? '' : `exit ${event.exit_code} · `;
    const label = labelOf(event.kind);
    const head = `${margin}${mark} ${colours.dim(label)} ${harmlessLine(event.name)}  ${colours.dim(exit + formatDuration(event.duration_ms))}`;
    const why = failed ? [event.error ?? '', event.output_tail ?? ''].filter(Boolean).join('\n') : '';
    return line(head) + (why ? flow(event.step_id, `${harmless(why).trimEnd()}\n`, outputMargin) : '');
  };
}

/** Returns the text that shows an event of the timeline. Returns an empty text for an event that is not shown. */
export function timelineText(
  event: TimelineEvent,
  { line }: Lines,
  colours: Colours,
  showStep: (event: FinishedStep) => string,
): string {
  const payload = event.payload ?? {};
  switch (event.event_type) {
    case 'worker_container_ready': {
      const backend = typeof payload.backend === 'string' ? payload.backend : 'unknown';
      const spawn = typeof payload.spawn_ms === 'number' ? ` in ${formatDuration(payload.spawn_ms)}` : '';
      const warning = backend === 'none' ? colours.yellow('  no isolation: the agent runs as a plain process') : '';
      const ready = line(`${margin}${colours.dim(`sandbox ready: ${harmlessLine(backend, 40)}${spawn}`)}${warning}`);
      const refused = refusedHosts(payload.network);
      return refused === ''
        ? ready
        : `${ready}${line(`${margin}${colours.yellow(`not allowed by the worker: ${refused}`)}`)}`;
    }
    case 'connection_denied':
      return line(`${margin}${colours.yellow('connection denied')} ${colours.dim(deniedText(payload))}`);
    case 'git_push':
      return line(`${margin}${colours.dim(`push to ${pushText(payload)}`)}`);
    case 'github_answered':
      return line(
        `${margin}${colours.dim(harmlessLine(`GitHub: ${payload.tool} ${payload.url ?? payload.reason}`, 400))}`,
      );
    case 'oz_run_cancelled':
      return caused('cancelled by', payload, line, colours);
    case 'turn_interrupted':
      return caused('interrupted by', payload, line, colours);
    case 'followup_edited':
      return caused('message edited by', payload, line, colours);
    case 'followup_withdrawn':
      return caused('message withdrawn by', payload, line, colours);
    case 'execution_retried':
      return line(`${margin}${colours.yellow('tried again')} ${colours.dim(inputHint(payload))}`.trimEnd());
    case 'execution_resumed':
      return line(`${margin}${colours.yellow('resumed elsewhere')} ${colours.dim(inputHint(payload))}`.trimEnd());
    case 'run_retried':
      return line(
        `${margin}${colours.yellow('repeated')} ${colours.dim(harmlessLine(`as ${payload.retry_run_id}`, 60))}`,
      );
    case 'run_not_retried':
      return line(
        `${margin}${colours.yellow('not repeated')} ${colours.dim(harmlessLine(String(payload.reason), 300))}`,
      );
    case 'model_switched': {
      const change = `${payload.from_model_id} → ${payload.to_model_id}: ${payload.reason}`;
      return line(`${margin}${colours.yellow('model changed')} ${colours.dim(harmlessLine(change, 300))}`);
    }
    case 'model_request_changed': {
      const removed = Array.isArray(payload.removed) ? payload.removed.join(', ') : '';
      return line(`${margin}${colours.dim(`not sent to the model: ${harmlessLine(removed, 300)}`)}`);
    }
    case 'output_limit_reached':
      return line(`${margin}${colours.yellow(harmlessLine(String(payload.message ?? 'output limit reached'), 300))}`);
    case 'setup_step_finished':
    case 'check_finished': {
      const step = stepOf(event);
      return step === undefined ? '' : showStep(step);
    }
    default:
      return '';
  }
}

/** Returns the line about an event that a caller caused; empty if the event does not name the caller. */
function caused(
  words: string,
  { by }: NonNullable<TimelineEvent['payload']>,
  line: Lines['line'],
  colours: Colours,
): string {
  const { display_name: name, uid } = (by ?? {}) as { readonly display_name?: unknown; readonly uid?: unknown };
  const who = name ?? uid;
  return typeof who === 'string' ? line(`${margin}${colours.yellow(words)} ${harmlessLine(who, 100)}`) : '';
}

/** Returns the finished step of the setup, or the check, that the event describes. Returns undefined if a member is missing. */
function stepOf({ event_type: type, payload = {} }: TimelineEvent): FinishedStep | undefined {
  const { name, duration_ms, kind, exit_code, output_tail, error } = payload;
  const isCheck = type === 'check_finished';
  const step_id = isCheck ? payload.check_id : payload.step_id;
  if (typeof step_id !== 'string' || typeof name !== 'string' || typeof duration_ms !== 'number') return undefined;
  return {
    step_id,
    kind: isCheck ? 'check' : kind === 'harness' ? 'harness' : 'setup_command',
    name,
    duration_ms,
    ...(typeof exit_code === 'number' ? { exit_code } : {}),
    ...(typeof output_tail === 'string' ? { output_tail } : {}),
    ...(typeof error === 'string' ? { error } : {}),
  };
}

type Payload = Readonly<Record<string, unknown>>;

/** Returns the text of an event `git_push`: the repository, and the result for each branch. */
function pushText({ repository, branches }: Payload): string {
  const texts = (Array.isArray(branches) ? branches : []).map((each: unknown) => {
    const { branch, result, reason } = Object(each) as Record<string, unknown>;
    return `${branch} ${result}${reason === undefined ? '' : ` (${reason})`}`;
  });
  return harmlessLine(`${repository}: ${texts.join(', ')}`, 300);
}

/** Returns the hosts that the environment allows and the worker does not. `network` is the member of an event `worker_container_ready`. */
function refusedHosts(network: unknown): string {
  const hosts = typeof network === 'object' && network !== null ? Reflect.get(network, 'refused_hosts') : undefined;
  return Array.isArray(hosts) ? harmlessLine(hosts.join(', '), 300) : '';
}

/**
 * Returns the text of an event `connection_denied`. The event describes one denied connection or, at the end of the execution, how often a
 * connection was denied in total.
 */
function deniedText({ host, port, message, total }: Payload): string {
  if (typeof total === 'number') return `${total} times in total`;
  const place = typeof port === 'number' && port > 0 ? `${host}:${port}` : `${host}`;
  return harmlessLine(`${place === '' ? '' : `${place}: `}${message}`, 300);
}

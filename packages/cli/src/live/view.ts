/** Converts the live events of a run into text for a terminal. Only returns the text and does not print it. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import type { RunState } from '@runyard/contract/runs/states';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { visible } from '@runyard/contract/wire/visible';
import { formatDuration } from './amounts.ts';
import type { Colours } from './colours.ts';
import { type Cleaner, createCleaner, harmless, harmlessLine, harmlessLines } from './harmless.ts';
import { linesAround } from './long-text.ts';
import { deniedText, refusedHosts } from './network.ts';
import { pushText } from './push.ts';
import { questionLines } from './question.ts';

/** Renders one run. The caller passes the events of the run in order, and prints the text that each call returns. */
export interface LiveView {
  render(event: LiveEvent): string;
  /** Returns the end of a line that is still open. */
  end(): string;
}

interface Action {
  /** The newest event of the action. Programs report an action again when they know more of its input. */
  event: ActionEvent;
  /** The lines that show the action; undefined: none was shown yet. */
  head: ActionHead | undefined;
  readonly cleaner: Cleaner;
  readonly key: string;
  /** The output that was already shown, before escape sequences were removed. */
  shown: string;
}

type ActionEvent = Extract<AgentEvent, { type: 'action' }>;

interface ActionHead {
  readonly lines: readonly string[];
  /** True if the lines contain the whole command. */
  readonly isWhole: boolean;
}

const margin = '  ';
const outputMargin = '  │ ';
/** Maximum number of lines that are shown of a command, and of an output that was not streamed. */
const longestCommand = 30;
const longestOutput = 200;

const stateWords: Record<RunState, string> = {
  QUEUED: 'queued',
  PENDING: 'handed to a worker',
  CLAIMED: 'a worker took it',
  INPROGRESS: 'the agent is at work',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  BLOCKED: 'waiting for a person',
  ERROR: 'error',
  CANCELLED: 'cancelled',
};

export function createLiveView(colours: Colours): LiveView {
  const actions = new Map<string, Action>();
  const messages = new Map<string, Cleaner>();
  const finishedSteps = new Set<string>();
  let lastState: RunState | undefined;
  let turns = 0;
  /** Key of the text to which the unfinished line belongs. `undefined` if the cursor is at the start of a line. */
  let openLine: string | undefined;

  const endLine = (): string => {
    const end = openLine === undefined ? '' : '\n';
    openLine = undefined;
    return end;
  };
  const line = (text: string): string => `${endLine()}${text}\n`;
  const dimLine = (text: string): string => line(`${margin}${colours.dim(text)}`);

  /**
   * Continues the text with this key. If the unfinished line belongs to another text, first begins a new line. Each line begins with the
   * margin.
   */
  function flow(key: string, text: string, lineMargin: string): string {
    if (text === '') return '';
    let result = openLine === key ? '' : endLine();
    for (const part of text.split(/(?<=\n)/)) {
      if (openLine !== key) result += lineMargin;
      result += part;
      openLine = part.endsWith('\n') ? undefined : key;
    }
    return result;
  }

  function setupStep(event: Extract<AgentEvent, { type: 'setup_step_finished' }>): string {
    if (finishedSteps.has(event.step_id)) return '';
    finishedSteps.add(event.step_id);
    const failed = event.error !== undefined || (event.exit_code ?? 0) !== 0;
    const mark = failed ? colours.red('✗') : colours.green('✓');
    const exit = event.exit_code === undefined ? '' : `exit ${event.exit_code} · `;
    const label = event.kind === 'harness' ? 'harness' : 'setup';
    const head = `${margin}${mark} ${colours.dim(label)} ${harmlessLine(event.name)}  ${colours.dim(exit + formatDuration(event.duration_ms))}`;
    const why = failed ? [event.error ?? '', event.output_tail ?? ''].filter(Boolean).join('\n') : '';
    return line(head) + (why ? flow(event.step_id, `${harmless(why).trimEnd()}\n`, outputMargin) : '');
  }

  /** Returns the lines that show an action: its command, or its tool with the main argument. */
  function headOf({ category, name, input }: ActionEvent): ActionHead {
    const command = category === 'command' ? commandOf(input) : undefined;
    if (command === undefined) {
      const tool = `${colours.cyan('●')} ${colours.bold(harmlessLine(name, 60))} ${colours.dim(inputHint(input))}`;
      return { lines: [tool.trimEnd()], isWhole: false };
    }
    const texts = linesAround(harmless(command), longestCommand);
    return {
      lines: texts.map((text, index) => `${colours.cyan(index === 0 ? '$' : ' ')} ${colours.bold(text)}`),
      isWhole: texts.join('\n') === visible(command).trimEnd(),
    };
  }

  /** Shows the action as its newest event describes it, unless it is already shown so. */
  function showAction(action: Action | undefined): string {
    if (action === undefined) return '';
    const head = headOf(action.event);
    if (action.head?.lines.join('\n') === head.lines.join('\n')) return '';
    action.head = head;
    return head.lines.map(line).join('');
  }

  /**
   * Shows an action as soon as its command or other input is known. If a later event changes the input, the action is shown again only when
   * it has output, a question or a result, because a program may still be sending the parts of the input.
   */
  function upsertAction(event: ActionEvent): string {
    const action: Action = actions.get(event.action_id) ?? {
      ...{ event, head: undefined, cleaner: createCleaner(), key: `action ${event.action_id}`, shown: '' },
    };
    action.event = event;
    actions.set(event.action_id, action);
    const isKnown = event.category !== 'command' || commandOf(event.input) !== undefined || hasTitle(event.input);
    return action.head === undefined && isKnown ? showAction(action) : '';
  }

  function actionResult(event: Extract<AgentEvent, { type: 'action_result' }>): string {
    const action = actions.get(event.action_id);
    let result = showAction(action);
    actions.delete(event.action_id);
    if (action && typeof event.output === 'string') {
      const rest = restOf(event.output, action.shown);
      if (rest.trim() !== '') {
        if (openLine === action.key && rest === event.output) result += `…${endLine()}`;
        result += flow(
          action.key,
          `${linesAround(harmless(rest), longestOutput).join('\n')}\n`,
          colours.dim(outputMargin),
        );
      }
    }
    const facts = [
      event.exit_code === undefined ? (event.state === 'completed' ? '' : event.state) : `exit ${event.exit_code}`,
      event.duration_ms === undefined ? '' : formatDuration(event.duration_ms),
      event.output_bytes === undefined ? '' : `${formatBytes(event.output_bytes)} of output`,
      event.output_artifact_uid === undefined ? '' : `output kept: artifact ${harmlessLine(event.output_artifact_uid)}`,
    ].filter(Boolean);
    const ok = event.state === 'completed' && (event.exit_code ?? 0) === 0;
    return (
      result +
      line(`${margin}${ok ? colours.green('✓') : colours.red('✗')} ${colours.dim(facts.join(' · '))}`.trimEnd())
    );
  }

  function text(event: Extract<AgentEvent, { type: 'text' }>): string {
    // Skips the prompt, because it was already shown for the event `turn_started`.
    if (event.role === 'user') return '';
    const cleaner = messages.get(event.message_id) ?? createCleaner();
    const key = `message ${event.message_id}`;
    const opening = messages.has(event.message_id) ? '' : endLine();
    messages.set(event.message_id, cleaner);
    return opening + flow(key, cleaner.clean(event.text), event.role === 'assistant' ? '' : margin);
  }

  function agentEvent(event: AgentEvent): string {
    switch (event.type) {
      case 'agent_started':
        return dimLine(`harness ${harmlessLine(event.harness)}, model ${harmlessLine(event.model_id)}`);
      case 'setup_step_started':
      case 'follow_up_taken':
      case 'checkpoint':
        return '';
      case 'setup_step_finished':
        return setupStep(event);
      case 'turn_started':
        turns += 1;
        return turns === 1 ? '' : line(`${colours.bold('›')} ${harmlessLine(event.prompt, 120)}`);
      case 'turn_finished':
        return endLine();
      case 'text':
        return text(event);
      case 'action':
        return upsertAction(event);
      case 'action_output': {
        const action = actions.get(event.action_id);
        if (!action) return '';
        action.shown += event.text;
        return showAction(action) + flow(action.key, action.cleaner.clean(event.text), colours.dim(outputMargin));
      }
      case 'action_result':
        return actionResult(event);
      case 'notice':
        return dimLine(`${harmlessLine(event.name, 60)} ${inputHint(event.data)}`.trimEnd());
      case 'blocked': {
        const { action } = event.request;
        const known = actions.get(action?.id ?? '');
        const shown = showAction(known);
        const isCommandShown = action?.category === 'command' && known?.head?.isWhole === true;
        return (
          shown +
          questionLines(event.request, { isCommandShown })
            .map((text, index) => line(index === 0 ? `${colours.yellow('?')} ${colours.bold(text)}` : `  ${text}`))
            .join('')
        );
      }
      case 'decided':
        return decided(event);
      case 'transcript':
        return '';
    }
  }

  function decided({
    decision,
    by,
    answered_by: author,
    message,
    title,
  }: Extract<AgentEvent, { type: 'decided' }>): string {
    if (by === 'policy') {
      const why = message === undefined ? '' : ` (${harmlessLine(message, 400)})`;
      return decision === 'approve' ? '' : dimLine(`refused by policy: ${harmlessLines(title, 100)}${why}`);
    }
    const mark = decision === 'deny' ? colours.red('✗') : colours.green('✓');
    const what = { approve: 'approved', deny: 'denied', answer: 'answered' }[decision];
    const who = author === undefined ? '' : ` by ${harmlessLine(author.display_name ?? author.uid, 60)}`;
    return line(`${margin}${mark} ${what}${who}${message === undefined ? '' : `: ${harmlessLine(message, 200)}`}`);
  }

  function timeline(event: TimelineEvent): string {
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
      case 'execution_retried':
        return line(`${margin}${colours.yellow('tried again')} ${colours.dim(inputHint(payload))}`.trimEnd());
      case 'execution_resumed':
        return line(`${margin}${colours.yellow('resumed elsewhere')} ${colours.dim(inputHint(payload))}`.trimEnd());
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
        return typeof payload.step_id === 'string' &&
          typeof payload.name === 'string' &&
          typeof payload.duration_ms === 'number'
          ? setupStep({
              seq: 1,
              occurred_at: event.occurred_at,
              type: 'setup_step_finished',
              step_id: payload.step_id,
              kind: payload.kind === 'harness' ? 'harness' : 'setup_command',
              name: payload.name,
              duration_ms: payload.duration_ms,
              ...(typeof payload.exit_code === 'number' ? { exit_code: payload.exit_code } : {}),
              ...(typeof payload.output_tail === 'string' ? { output_tail: payload.output_tail } : {}),
              ...(typeof payload.error === 'string' ? { error: payload.error } : {}),
            })
          : '';
      default:
        return '';
    }
  }

  return {
    end: endLine,
    render(event) {
      if (event.type === 'conversation') return agentEvent(event.event);
      if (event.type === 'timeline') return timeline(event.event);
      if (event.state === lastState) return '';
      lastState = event.state;
      return dimLine(stateWords[event.state]);
    },
  };
}

/** Returns the part of the output that was not shown yet. Returns the whole output if it does not begin with the shown text. */
function restOf(output: string, shown: string): string {
  if (output.startsWith(shown)) return output.slice(shown.length);
  return shown.startsWith(output.trimEnd()) ? '' : output;
}

function commandOf(input: unknown): string | undefined {
  if (typeof input === 'string') return input;
  if (typeof input !== 'object' || input === null || !('command' in input)) return undefined;
  if (typeof input.command === 'string') return input.command;
  return Array.isArray(input.command) ? input.command.filter((word) => typeof word === 'string').join(' ') : undefined;
}

/** Returns true if the input is the title of the action, which is all that some programs report of a command. */
const hasTitle = (input: unknown): boolean => typeof input === 'object' && input !== null && 'title' in input;

/** Returns the main argument of a tool call: its path, pattern or URL, or else its JSON. */
function inputHint(input: unknown): string {
  if (input === undefined || input === null) return '';
  if (typeof input === 'string') return harmlessLine(input, 100);
  if (typeof input === 'object') {
    for (const name of [
      'path',
      'file_path',
      'pattern',
      'url',
      'query',
      'text',
      'message',
      'reason',
      'title',
    ] as const) {
      const value = (input as Readonly<Record<string, unknown>>)[name];
      if (typeof value === 'string') return harmlessLine(value, 100);
    }
  }
  return harmlessLine(JSON.stringify(input), 100);
}

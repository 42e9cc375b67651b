/** The actions of an agent in a terminal: its commands with their output, and its other tool calls. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { visible } from '@runyard/contract/wire/visible';
import { formatDuration } from '../../../terminal/amounts.ts';
import type { Colours } from '../../../terminal/colours.ts';
import { type Cleaner, createCleaner, harmless, harmlessLine } from '../../../terminal/harmless.ts';
import { linesAround } from '../../../terminal/long-text.ts';
import { type Lines, margin, outputMargin } from './lines.ts';

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

type ActionResult = Extract<AgentEvent, { type: 'action_result' }>;

/** Maximum number of lines that are shown of a command, and of an output that was not streamed. */
const longestCommand = 30;
const longestOutput = 200;

/** The actions of one run. Each function returns the text that shows the event. */
interface Actions {
  begin(event: ActionEvent): string;
  output(event: Extract<AgentEvent, { type: 'action_output' }>): string;
  end(event: ActionResult): string;
  /** Shows the action as its newest event describes it, unless it is already shown so. */
  show(actionId: string): string;
  /** Returns whether the lines that were shown contain the whole command. */
  isWhole(actionId: string): boolean;
}

export function createActions(lines: Lines, colours: Colours): Actions {
  const actions = new Map<string, Action>();

  /** Shows the action as its newest event describes it, unless it is already shown so. */
  function showAction(action: Action | undefined): string {
    if (action === undefined) return '';
    const head = headOf(action.event, colours);
    if (action.head?.lines.join('\n') === head.lines.join('\n')) return '';
    action.head = head;
    return head.lines.map(lines.line).join('');
  }

  /**
   * Shows an action as soon as its command or other input is known. If a later event changes the input, the action is shown again only when
   * it has output, a question or a result, because a program may still be sending the parts of the input.
   */
  function begin(event: ActionEvent): string {
    const action: Action = actions.get(event.action_id) ?? {
      ...{ event, head: undefined, cleaner: createCleaner(), key: `action ${event.action_id}`, shown: '' },
    };
    action.event = event;
    actions.set(event.action_id, action);
    const isKnown = event.category !== 'command' || commandOf(event.input) !== undefined || hasTitle(event.input);
    return action.head === undefined && isKnown ? showAction(action) : '';
  }

  /** Shows the part of the output that was not streamed. */
  function restOfOutput({ output }: ActionResult, { key, shown }: Action): string {
    if (typeof output !== 'string') return '';
    const rest = restOf(output, shown);
    if (rest.trim() === '') return '';
    const cut = lines.isOpen(key) && rest === output ? `…${lines.endLine()}` : '';
    const text = `${linesAround(harmless(rest), longestOutput).join('\n')}\n`;
    return cut + lines.flow(key, text, colours.dim(outputMargin));
  }

  return {
    begin,
    output({ action_id: id, text }) {
      const action = actions.get(id);
      if (!action) return '';
      action.shown += text;
      return showAction(action) + lines.flow(action.key, action.cleaner.clean(text), colours.dim(outputMargin));
    },
    end(event) {
      const action = actions.get(event.action_id);
      const shown = showAction(action);
      actions.delete(event.action_id);
      return shown + (action ? restOfOutput(event, action) : '') + lines.line(outcomeOf(event, colours));
    },
    show: (id) => showAction(actions.get(id)),
    isWhole: (id) => actions.get(id)?.head?.isWhole === true,
  };
}

/** Returns the main argument of a tool call: its path, pattern or URL, or else its JSON. */
export function inputHint(input: unknown): string {
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

/** Returns the lines that show an action: its command, or its tool with the main argument. */
function headOf({ category, name, input }: ActionEvent, colours: Colours): ActionHead {
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

/** Returns the line with the outcome of an action. */
function outcomeOf(event: ActionResult, colours: Colours): string {
  const facts = [
    event.exit_code === undefined ? (event.state === 'completed' ? '' : event.state) : `exit ${event.exit_code}`,
    event.duration_ms === undefined ? '' : formatDuration(event.duration_ms),
    event.output_bytes === undefined ? '' : `${formatBytes(event.output_bytes)} of output`,
    event.output_artifact_uid === undefined ? '' : `output kept: artifact ${harmlessLine(event.output_artifact_uid)}`,
  ].filter(Boolean);
  const ok = event.state === 'completed' && (event.exit_code ?? 0) === 0;
  return `${margin}${ok ? colours.green('✓') : colours.red('✗')} ${colours.dim(facts.join(' · '))}`.trimEnd();
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

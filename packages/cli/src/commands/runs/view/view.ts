/** Converts the live events of a run into text for a terminal. Only returns the text and does not print it. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import type { RunState } from '@runyard/contract/runs/states';
import type { Colours } from '../../../terminal/colours.ts';
import { type Cleaner, createCleaner, harmlessLine, harmlessLines } from '../../../terminal/harmless.ts';
import { createActions, inputHint } from './actions.ts';
import { createLines, type Lines, margin } from './lines.ts';
import { questionLines } from './question.ts';
import { showSteps, timelineText } from './timeline-text.ts';

/** Renders one run. The caller passes the events of the run in order, and prints the text that each call returns. */
export interface LiveView {
  render(event: LiveEvent): string;
  /** Returns the end of a line that is still open. */
  end(): string;
}

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
  const lines = createLines(colours);
  const { line, dimLine, endLine, flow } = lines;
  const actions = createActions(lines, colours);
  const showStep = showSteps(lines, colours);
  const messages = new Map<string, Cleaner>();
  let lastState: RunState | undefined;
  let turns = 0;

  function text(event: Extract<AgentEvent, { type: 'text' }>): string {
    // Skips the prompt, because it was already shown for the event `turn_started`.
    if (event.role === 'user') return '';
    const cleaner = messages.get(event.message_id) ?? createCleaner();
    const key = `message ${event.message_id}`;
    const opening = messages.has(event.message_id) ? '' : endLine();
    messages.set(event.message_id, cleaner);
    return opening + flow(key, cleaner.clean(event.text), event.role === 'assistant' ? '' : margin);
  }

  function blocked({ request }: Extract<AgentEvent, { type: 'blocked' }>): string {
    const { id = '', category } = request.action ?? {};
    const shown = actions.show(id);
    const isCommandShown = category === 'command' && actions.isWhole(id);
    const [first = '', ...others] = questionLines(request, { isCommandShown });
    const question = line(`${colours.yellow('?')} ${colours.bold(first)}`);
    return shown + question + others.map((each) => line(`  ${each}`)).join('');
  }

  function agentEvent(event: AgentEvent): string {
    switch (event.type) {
      case 'agent_started':
        return dimLine(`harness ${harmlessLine(event.harness)}, model ${harmlessLine(event.model_id)}`);
      case 'setup_step_started':
      case 'check_started':
      case 'follow_up_taken':
      case 'checkpoint':
        return '';
      case 'setup_step_finished':
        return showStep(event);
      case 'check_finished':
        return showStep({ ...event, step_id: event.check_id, kind: 'check' });
      case 'turn_started':
        turns += 1;
        return turns === 1 ? '' : line(`${colours.bold('›')} ${harmlessLine(event.prompt, 120)}`);
      case 'turn_finished':
        return endLine();
      case 'text':
        return text(event);
      case 'action':
        return actions.begin(event);
      case 'action_output':
        return actions.output(event);
      case 'action_result':
        return actions.end(event);
      case 'notice':
        return dimLine(`${harmlessLine(event.name, 60)} ${inputHint(event.data)}`.trimEnd());
      case 'blocked':
        return blocked(event);
      case 'decided':
        return decisionText(event, lines, colours);
      case 'transcript':
        return '';
    }
  }

  return {
    end: endLine,
    render(event) {
      if (event.type === 'conversation') return agentEvent(event.event);
      if (event.type === 'timeline') return timelineText(event.event, lines, colours, showStep);
      if (event.state === lastState) return '';
      lastState = event.state;
      return dimLine(stateWords[event.state]);
    },
  };
}

function decisionText(
  { decision, by, answered_by: author, message, title }: Extract<AgentEvent, { type: 'decided' }>,
  { line, dimLine }: Lines,
  colours: Colours,
): string {
  if (by === 'policy') {
    const why = message === undefined ? '' : ` (${harmlessLine(message, 400)})`;
    return decision === 'approve' ? '' : dimLine(`refused by policy: ${harmlessLines(title, 100)}${why}`);
  }
  const mark = decision === 'deny' ? colours.red('✗') : colours.green('✓');
  const what = { approve: 'approved', deny: 'denied', answer: 'answered' }[decision];
  const who = author === undefined ? '' : ` by ${harmlessLine(author.display_name ?? author.uid, 60)}`;
  return line(`${margin}${mark} ${what}${who}${message === undefined ? '' : `: ${harmlessLine(message, 200)}`}`);
}

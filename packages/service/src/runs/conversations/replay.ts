import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type {
  ActionCategory,
  ActionOutput,
  ActionState,
  ContentBlock,
  ConversationResponse,
  Message,
  Step,
} from '@runyard/contract/runs/conversations';
import { asObject, type GrowingOutput, growingOutput, summarisedText } from './output.ts';

/** Builds a conversation from the events of agents. The events are applied one after another. */
export interface Replay {
  apply(event: AgentEvent): void;
  /**
   * Ends the run or execution whose events were applied. All actions that are still open then count as interrupted, except those with the
   * ids `others`.
   */
  endRun(others?: ReadonlySet<string>): void;
  /** Returns whether the action with this id has begun and has not ended. */
  isOpen(actionId: string): boolean;
  /** Returns the conversation so far. */
  read(): ConversationResponse;
}

interface OpenAction {
  readonly action: Extract<ContentBlock, { type: 'action' }>;
  readonly result: Extract<ContentBlock, { type: 'action_result' }>;
  readonly output: GrowingOutput;
}

/** The output of an action that the end of its run interrupted. */
const interrupted = 'interrupted: the run ended before this action did';

/** Is called at the beginning of each message, with the message and its first event. */
type OnBegin = (message: Message, event: AgentEvent) => void;

/** An event of a step. */
type StepEvent = AgentEvent & { readonly step_id: string };
/** Adds messages to the step of an event. */
type Say = (event: StepEvent, ...messages: Message[]) => void;

/** Replays the actions of a conversation. */
function replayActions(say: Say) {
  const open = new Map<string, OpenAction>();

  const settle = (action: OpenAction, state: ActionState, output: ActionOutput) => {
    action.result.state = state;
    action.result.output = output;
  };

  const begin = (event: Extract<AgentEvent, { type: 'action' }>) => {
    const members = { category: event.category satisfies ActionCategory, name: event.name };
    const input = asObject(event.input);
    const openAction = open.get(event.action_id);
    if (openAction) {
      // Harnesses report the same action again when they know more of its input.
      Object.assign(openAction.action, members, { input });
      Object.assign(openAction.result, members);
      return;
    }
    const action: OpenAction['action'] = { type: 'action', id: event.action_id, ...members, input };
    const result: OpenAction['result'] = {
      type: 'action_result',
      action_id: event.action_id,
      ...members,
      state: 'running',
      output: { text: '' },
    };
    open.set(event.action_id, { action, result, output: growingOutput() });
    say(
      event,
      { role: 'assistant', content: [action], timestamp: event.occurred_at },
      { role: 'tool', content: [result], timestamp: event.occurred_at },
    );
  };

  const finish = (event: Extract<AgentEvent, { type: 'action_result' }>) => {
    const action = open.get(event.action_id);
    if (!action) return;
    if (event.output_bytes !== undefined) action.output.setTotal(event.output_bytes);
    const { exit_code, duration_ms, output_artifact_uid } = event;
    settle(action, event.state, {
      text: event.output === undefined ? action.output.read() : summarisedText(event.output),
      ...(exit_code === undefined ? {} : { exit_code }),
      ...(duration_ms === undefined ? {} : { duration_ms }),
      ...(output_artifact_uid === undefined ? {} : { output_artifact_uid }),
    });
    if (event.state !== 'running') open.delete(event.action_id);
  };

  return {
    begin,
    finish,
    append: (actionId: string, text: string) => open.get(actionId)?.output.append(text),
    isOpen: (actionId: string) => open.has(actionId),
    /** Ends the open actions, except `others`. */
    endRun: (others: ReadonlySet<string> | undefined) => {
      for (const [id, action] of open) {
        if (others?.has(id)) continue;
        const output = action.output.read();
        settle(action, 'failed', { text: output === '' ? interrupted : `${output}\n${interrupted}` });
        open.delete(id);
      }
    },
    /** Writes the present outputs of the open actions into their messages. */
    showOutputs: () => {
      for (const action of open.values()) action.result.output = { text: action.output.read() };
    },
  };
}

/** Replays the requests to a person. `addEvent` adds an event block to the step of an event. */
function replayRequests(addEvent: (event: StepEvent, name: string, data: Record<string, unknown>) => void) {
  /** For each request: the data of its event block. The decision is added to this data later. */
  const requests = new Map<string, Record<string, unknown>>();
  return {
    ask: (event: Extract<AgentEvent, { type: 'blocked' }>) => {
      const { request_id, kind, title, options, action } = event.request;
      const shown = { ...(options ? { options } : {}), ...(action?.id ? { action_id: action.id } : {}) };
      const data = { request: { request_id, title, ...shown } };
      requests.set(request_id, data);
      addEvent(event, kind, data);
    },
    decide: (event: Extract<AgentEvent, { type: 'decided' }>) => {
      const { request_id, kind, title, action_id, decision, by, answered_by, follow_up_id, message } = event;
      const request = requests.get(request_id);
      const data = request ?? { request: { request_id, title, ...(action_id ? { action_id } : {}) } };
      Object.assign(
        data,
        { decision, by },
        answered_by ? { answered_by } : {},
        follow_up_id ? { follow_up_id } : {},
        message ? { message } : {},
      );
      if (!request) addEvent(event, kind, data);
    },
  };
}

/** Starts a replay of the conversation with the given id. */
export function startReplay(conversationId: string, onBegin: OnBegin = () => undefined): Replay {
  const steps: Step[] = [];
  const stepsById = new Map<string, Step>();
  const messagesById = new Map<string, { message: Message; text: Extract<ContentBlock, { type: 'text' }> }>();

  const stepOf = (id: string, startedAt: string): Step => {
    const openStep = stepsById.get(id);
    if (openStep) return openStep;
    const step: Step = { id, started_at: startedAt, messages: [], steps: [] };
    stepsById.set(id, step);
    steps.push(step);
    return step;
  };

  const say: Say = (event, ...messages) => {
    stepOf(event.step_id, event.occurred_at).messages.push(...messages);
    for (const message of messages) onBegin(message, event);
  };

  const addText = (event: Extract<AgentEvent, { type: 'text' }>) => {
    const begun = messagesById.get(event.message_id);
    if (begun) {
      begun.text.text += event.text;
      return;
    }
    const text = { type: 'text' as const, text: event.text, message_id: event.message_id };
    const message: Message = {
      role: event.role,
      content: [text],
      timestamp: event.occurred_at,
      message_ids: [event.message_id],
    };
    messagesById.set(event.message_id, { message, text });
    say(event, message);
  };

  const addEvent = (event: StepEvent, name: string, data: Record<string, unknown>) => {
    say(event, { role: 'assistant', content: [{ type: 'event', name, data }], timestamp: event.occurred_at });
  };

  const actions = replayActions(say);
  const requests = replayRequests(addEvent);

  return {
    apply: (event) => {
      switch (event.type) {
        case 'turn_started': {
          const content: ContentBlock[] = [{ type: 'text', text: event.prompt }];
          const { sent_by, mode } = event;
          say(event, {
            role: 'user',
            content,
            timestamp: event.occurred_at,
            ...(sent_by ? { sent_by } : {}),
            ...(mode ? { mode } : {}),
          });
          break;
        }
        case 'turn_finished': {
          const step = stepOf(event.step_id, event.occurred_at);
          step.completed_at = event.occurred_at;
          if (event.summary !== undefined) step.summary = event.summary;
          break;
        }
        case 'text':
          addText(event);
          break;
        case 'action':
          actions.begin(event);
          break;
        case 'action_output':
          actions.append(event.action_id, event.text);
          break;
        case 'action_result':
          actions.finish(event);
          break;
        case 'notice':
          addEvent(event, event.name, asObject(event.data));
          break;
        case 'blocked':
          requests.ask(event);
          break;
        case 'decided':
          requests.decide(event);
          break;
        // The conversation does not show these events: setup steps and checks belong to the timeline, and transcripts have separate routes.
        case 'agent_started':
        case 'follow_up_taken':
        case 'setup_step_started':
        case 'setup_step_finished':
        case 'check_started':
        case 'check_finished':
        case 'transcript':
          break;
      }
    },
    endRun: (others) => {
      actions.endRun(others);
      messagesById.clear();
    },
    isOpen: actions.isOpen,
    read: () => {
      actions.showOutputs();
      return { conversation_id: conversationId, steps };
    },
  };
}

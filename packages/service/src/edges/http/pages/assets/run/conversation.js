/** Shows the conversation while it grows. Texts of agents and people become text or sanitized Markdown, never markup of their own. */
import { by, element } from './elements.js';
import { showMarkdown } from './markdown.js';
import { durationText } from './timeline.js';
import { visible } from './visible.js';

const texts = new Map();
const actions = new Map();
let model = '';

/** Changes the page, and keeps its end in view for a reader who has scrolled to it. A page that was just opened stays at its top. */
function keepEnd(change) {
  const page = document.scrollingElement;
  const isAtEnd = page.scrollTop > 0 && page.scrollHeight - page.scrollTop - page.clientHeight < 80;
  change();
  if (isAtEnd && by('view').dataset.live) page.scrollTop = page.scrollHeight;
}

const append = (node) => keepEnd(() => by('conversation').append(node));

function say(role, text, id) {
  const known = id && texts.get(id);
  if (known) {
    known.text += text;
    showMarkdown(known.body, known.text, keepEnd);
    return;
  }
  const body = element('div', { className: 'markdown' });
  const who = role === 'assistant' && model ? `${role} · ${model}` : role;
  const article = element(
    'article',
    { className: 'said' },
    element('span', { className: 'who', textContent: who }),
    body,
  );
  article.dataset.role = role;
  const message = { body, text };
  if (id) texts.set(id, message);
  append(article);
  showMarkdown(body, text, keepEnd);
}

/** Shows a text that is no Markdown: its lines stay. */
function sayPlainly(role, text) {
  const article = element(
    'article',
    { className: 'said' },
    element('span', { className: 'who', textContent: role }),
    element('p', { className: 'plain', textContent: visible(text) }),
  );
  article.dataset.role = role;
  append(article);
}

const inputText = (input) => {
  if (typeof input === 'string') return input;
  const command = input?.command ?? input?.path ?? input?.query ?? input?.text;
  return typeof command === 'string' ? command : JSON.stringify(input);
};

function setActionState(action, state, text) {
  action.details.dataset.state = state;
  action.outcome.textContent = text;
}

function beginAction(id, name, input) {
  const known = actions.get(id);
  if (known) {
    // A call is reported again when more of its input is known.
    known.name.textContent = visible(name);
    known.input.textContent = visible(inputText(input) ?? '');
    return;
  }
  const outcome = element('span', { className: 'outcome' });
  const output = element('pre', { hidden: true });
  const title = element('strong', { textContent: visible(name) });
  const code = element('code', { textContent: visible(inputText(input) ?? '') });
  const summary = element('summary', {}, title, ' ', code, ' ', outcome);
  const details = element('details', { className: 'act', open: true }, summary, output);
  const action = { details, outcome, output, name: title, input: code };
  setActionState(action, 'running', 'running');
  actions.set(id, action);
  append(details);
}

function addOutput(id, text) {
  const action = actions.get(id);
  if (!action) return;
  const { output } = action;
  // Follows the newest lines, unless the reader has scrolled up to earlier ones.
  const isAtEnd = output.hidden || output.scrollHeight - output.scrollTop - output.clientHeight < 24;
  output.hidden = false;
  output.append(text);
  if (isAtEnd) output.scrollTop = output.scrollHeight;
}

function endAction(id, { state, output, exit_code: exitCode, duration_ms: ms }) {
  const action = actions.get(id);
  if (!action) return;
  const parts = [state];
  if (exitCode !== undefined) parts.push(`exit code ${exitCode}`);
  if (ms !== undefined) parts.push(durationText(ms));
  setActionState(action, state, parts.join(', '));
  if (output === undefined) return;
  action.output.textContent = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
  action.output.hidden = action.output.textContent === '';
}

function askAbout(request) {
  const action = actions.get(request.action?.id ?? request.action_id);
  if (action && request.kind !== 'question') return setActionState(action, 'waiting', 'waits for your decision');
  // What a person decides about has its lines; an agent writes its questions in Markdown.
  if (request.kind === 'question') return say('question', request.title);
  sayPlainly('question', request.action ? `${request.title}\n\n${inputText(request.action.input)}` : request.title);
}

/** Returns who decided. `author`: who sent the answer, by the record of the service; absent: the policy. */
function nameOf(whose, author) {
  if (author === undefined) return `a ${whose}`;
  const kind = { user: '', run: ' (run)', service_account: ' (agent)' }[author.type];
  return `${author.display_name ?? author.uid}${kind}`;
}

/** Shows a decision. An approval by the policy is not shown, because no person was asked. */
function showDecision({ decision, by: whose, answered_by: author, message, title, action_id: actionId }) {
  if (decision === undefined || (whose === 'policy' && decision === 'approve')) return;
  const action = actions.get(actionId);
  if (action?.details.dataset.state === 'waiting')
    setActionState(action, decision === 'deny' ? 'denied' : 'running', decision === 'deny' ? 'denied' : 'running');
  const words = { approve: 'approved', deny: 'denied', answer: 'answered' }[decision] ?? decision;
  const what = whose === 'policy' ? `:${title.includes('\n') ? '\n' : ' '}${title}` : '';
  sayPlainly('decision', `${words} by ${nameOf(whose, author)}${message ? `: ${message}` : ''}${what}`);
}

/** Names the model in the messages that follow. */
export function setModel(modelId) {
  model = modelId;
}

/** Shows one event of the live stream. */
export function applyAgentEvent(event) {
  switch (event.type) {
    case 'turn_started':
      return say('user', event.prompt);
    case 'text':
      return say(event.role, event.text, event.message_id);
    case 'action':
      return beginAction(event.action_id, event.name, event.input);
    case 'action_output':
      return addOutput(event.action_id, event.text);
    case 'action_result':
      return endAction(event.action_id, event);
    case 'blocked':
      return askAbout(event.request);
    case 'decided':
      return showDecision(event);
    default:
  }
}

/** Returns whether the block is a request to a person. Notices are blocks of this type too: harnesses choose their names and data. */
const isRequest = ({ type, name, data }) =>
  type === 'event' && (name === 'permission' || name === 'question') && typeof data?.request?.title === 'string';

function showBlock(role, block) {
  if (block.type === 'text') say(role, block.text);
  else if (block.type === 'action') beginAction(block.id, block.name, block.input);
  else if (block.type === 'action_result') {
    const { text, ...end } = block.output;
    endAction(block.action_id, { ...end, state: block.state, output: text });
  } else if (isRequest(block)) {
    const { request, ...decided } = block.data;
    if (decided.by !== 'policy') askAbout(request);
    showDecision({ ...decided, title: request.title, action_id: request.action?.id ?? request.action_id });
  }
}

/** Shows a conversation that was read as a whole. */
export function showSteps(steps) {
  for (const step of steps) {
    for (const message of step.messages) for (const block of message.content) showBlock(message.role, block);
    showSteps(step.steps);
  }
}

export function clearStory() {
  by('conversation').replaceChildren();
  by('timeline').replaceChildren();
  texts.clear();
  actions.clear();
}

/** The buttons and forms that act on the run. Only those that the run's state allows are shown. */
import { post, Refused, runId, Unreached } from './api.js';
import { announce, by, element } from './elements.js';
import { isTerminal, shownRun } from './show-run.js';
import { visible } from './visible.js';

const path = `/agent/runs/${encodeURIComponent(runId)}`;
/** A PENDING run cannot be cancelled until a worker has claimed it. */
const cancelPatienceMs = 30_000;
const retryMs = 1000;
/** The buttons of a new question work after this time: the second click of a double click was meant for the question before. */
const readMs = 600;

let onActed = () => undefined;
let askedId;
let readableAt = 0;
/** Areas whose buttons act now. */
const acting = new Set();
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const messageHints = {
  QUEUED: 'It is added to the prompt: the agent has not begun yet.',
  INPROGRESS: 'The agent reads it after what it does now.',
  ended: 'The agent continues the run with it.',
};

/** Shows the actions that the run allows now. */
export function showControls(run) {
  const { state, blocked_on: asked } = run;
  const canInterrupt = state === 'INPROGRESS';
  const canCancel = !isTerminal(state) && run.is_run_type_cancellable !== false;
  by('interrupt').hidden = !canInterrupt;
  by('cancel').hidden = !canCancel;
  by('controls').hidden = !canInterrupt && !canCancel;
  by('send-form').hidden = asked !== undefined;
  by('send-hint').textContent =
    state === 'INPROGRESS' ? messageHints.INPROGRESS : isTerminal(state) ? messageHints.ended : messageHints.QUEUED;
  showQuestion(asked);
}

/** Returns whether the title is the command and nothing else, perhaps behind "Run" and in quotation marks. */
const isTitleOf = (command, title) =>
  [title, title.replace(/^run /i, '')].some((text) => text.trim().replace(/^([`'"])(.*)\1$/s, '$2') === command.trim());

/** Returns the parts of the action that its title does not show: a command that is not the title, and all other members. */
function unshownInput({ title, action }) {
  const input = action?.input;
  if (input === undefined || input === null) return '';
  if (typeof input !== 'object' || Array.isArray(input)) return JSON.stringify(input, null, 2);
  const { command, ...others } = input;
  const rest = typeof command === 'string' ? others : input;
  const isShown = typeof command !== 'string' || isTitleOf(command, title);
  const parts = [isShown ? '' : command, Object.keys(rest).length > 0 ? JSON.stringify(rest, null, 2) : ''];
  return parts.filter((part) => part !== '').join('\n');
}

function showQuestion(asked) {
  by('ask').hidden = asked === undefined;
  if (asked?.request_id === askedId) return;
  askedId = asked?.request_id;
  if (!asked) {
    announce('', 'ask-announcer');
    return;
  }
  const isPermission = asked.kind === 'permission';
  by('ask-heading').textContent = isPermission ? 'The agent waits for your decision' : 'The agent asks you';
  const tool = isPermission && asked.action ? `Tool: ${visible(asked.action.name)}` : '';
  by('ask-tool').hidden = tool === '';
  by('ask-tool').textContent = tool;
  by('ask-title').textContent = visible(asked.title);
  const input = unshownInput(asked);
  by('ask-input').hidden = input === '';
  by('ask-input').textContent = visible(input);
  by('ask-label').textContent = isPermission ? 'Reason, or what to do instead (optional)' : 'Your answer';
  by('ask-text').value = '';
  by('approve').hidden = !isPermission;
  by('deny').hidden = !isPermission;
  by('answer').hidden = isPermission;
  by('ask-problem').textContent = '';
  by('ask-options').replaceChildren(
    ...(isPermission ? [] : (asked.options ?? [])).map((option) => {
      const button = element('button', { type: 'button', textContent: visible(option) });
      button.addEventListener('click', () => respond({ message: option }));
      return element('li', {}, button);
    }),
  );
  readableAt = performance.now() + readMs;
  setButtons('ask');
  setTimeout(() => setButtons('ask'), readMs + 50);
  // Of its own, because states of the run that are announced meanwhile would take its place.
  const announced = [by('ask-heading').textContent, tool, visible(asked.title)].filter((part) => part !== '');
  announce(announced.join(': '), 'ask-announcer');
}

function setButtons(area) {
  const isDisabled = acting.has(area) || (area === 'ask' && performance.now() < readableAt);
  for (const button of by(area).querySelectorAll('button')) button.disabled = isDisabled;
}

/** Does `act` with the buttons of `area` disabled, so that a double click acts once, and shows a refusal in `problem`. */
async function doInArea(area, problem, act, done) {
  if (acting.has(area)) return;
  acting.add(area);
  setButtons(area);
  by(problem).textContent = '';
  try {
    await act();
    announce(done);
    await onActed();
  } catch (error) {
    by(problem).textContent = error instanceof Unreached ? `${error.message} Try again.` : error.message;
    if (error instanceof Refused) await onActed().catch(() => undefined);
  } finally {
    acting.delete(area);
    setButtons(area);
  }
}

function respond(answer) {
  const { blocked_on: asked } = shownRun();
  if (!asked || performance.now() < readableAt) return;
  const note = answer.message ?? by('ask-text').value.trim();
  if (!answer.decision && note === '') {
    by('ask-problem').textContent = 'Write an answer first.';
    by('ask-text').focus();
    return;
  }
  // The id makes sure that the answer belongs to the question that is shown here, not to a later one.
  const body = { ...answer, request_id: asked.request_id, ...(note === '' ? {} : { message: note }) };
  const done = { approve: 'Approved.', deny: 'Denied.' }[answer.decision] ?? 'Answered.';
  doInArea('ask', 'ask-problem', () => post(`${path}/followups`, body), done);
}

function send() {
  const message = by('send-text').value.trim();
  if (message === '') {
    by('send-problem').textContent = 'Write a message first.';
    by('send-text').focus();
    return;
  }
  const deliver = async () => {
    await post(`${path}/followups`, { message });
    by('send-text').value = '';
    by('send-done').textContent = 'Sent.';
  };
  by('send-done').textContent = '';
  doInArea('send-form', 'send-problem', deliver, 'The message was sent.');
}

async function cancelWithPatience() {
  const until = performance.now() + cancelPatienceMs;
  for (;;) {
    try {
      return await post(`${path}/cancel`);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409 || performance.now() > until) throw error;
      await wait(retryMs);
    }
  }
}

function sendOnControlEnter(field, act) {
  by(field).addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    act();
  });
}

/** Connects the buttons. `acted` reads and shows the run again after an action. */
export function connectControls(acted) {
  onActed = acted;
  by('approve').addEventListener('click', () => respond({ decision: 'approve' }));
  by('deny').addEventListener('click', () => respond({ decision: 'deny' }));
  by('ask-form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (!by('answer').hidden) respond({});
  });
  by('send-form').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  sendOnControlEnter('send-text', send);
  by('send-text').addEventListener('input', () => {
    by('send-done').textContent = '';
  });
  by('interrupt').addEventListener('click', () =>
    doInArea('controls', 'control-problem', () => post(`${path}/interrupt`), 'The agent was told to stop its turn.'),
  );
  by('cancel').addEventListener('click', () => by('cancel-dialog').showModal());
  by('cancel-dialog').addEventListener('close', () => {
    if (by('cancel-dialog').returnValue === 'cancel')
      doInArea('controls', 'control-problem', cancelWithPatience, 'The run is cancelled.');
    by('cancel-dialog').returnValue = '';
  });
}

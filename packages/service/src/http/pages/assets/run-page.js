// The page of a run. Everything that comes from an agent is put into the page as text, never as markup.

const runId = location.pathname.split('/').at(-1);
const api = '/api/v1/agent';
const keyName = 'runyard.key';
const terminal = ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'];
/** In these states the run has not begun; its status message says what it waits for. */
const waiting = ['QUEUED', 'PENDING', 'CLAIMED'];
const pollMs = 3000;
const by = (id) => document.getElementById(id);

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// ── API ──────────────────────────────────────────────────────────────────────────────────────────────────────────

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem(keyName)}`, ...options.headers };
  const response = await fetch(api + path, { ...options, headers });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(response.status, problem.detail ?? problem.title ?? `HTTP ${response.status}`);
}

const read = async (path) => (await call(path)).json();

// ── What is shown ────────────────────────────────────────────────────────────────────────────────────────────────

const durationText = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const timeText = (text) => new Date(text).toLocaleTimeString();

function showState(state, message) {
  by('state').textContent = state;
  by('state').dataset.state = state;
  by('message').hidden = !message;
  by('message').textContent = message ?? '';
  by('message').dataset.tone = state === 'FAILED' || state === 'ERROR' ? 'bad' : '';
}

let readAgain;

/** Reads the run again while it waits: what it waits for changes without an event. */
function keepReason(state, afterMs = pollMs) {
  clearTimeout(readAgain);
  if (!waiting.includes(state) && afterMs === pollMs) return;
  readAgain = setTimeout(() => refreshRun().catch(() => keepReason(state)), afterMs);
}

function showRun(run) {
  document.title = `${run.title} · Runyard`;
  by('title').textContent = run.title;
  keepReason(run.state);
  const asked = run.state === 'BLOCKED' ? undefined : run.blocked_on?.title;
  showState(run.state, [run.status_message?.message, asked && `The agent asks: ${asked}`].filter(Boolean).join('\n'));
  const usage = run.request_usage;
  const facts = {
    Run: run.run_id,
    Created: new Date(run.created_at).toLocaleString(),
    'Run time': (run.run_time ?? 'PT0S').slice(2).toLowerCase(),
    Harness: run.agent_config?.harness?.type ?? 'oz',
    Model: run.agent_config?.model_id,
    Source: run.source,
    By: run.creator?.display_name ?? run.creator?.uid,
    Tokens: usage?.total_tokens?.toLocaleString(),
    Cost: usage?.inference_cost_usd === undefined ? undefined : `$${usage.inference_cost_usd.toFixed(4)}`,
  };
  by('facts').replaceChildren(
    ...Object.entries(facts)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) =>
        element('div', {}, element('dt', { textContent: name }), element('dd', { textContent: value })),
      ),
  );
  by('artifacts').replaceChildren(...(run.artifacts ?? []).map(artifactItem));
  by('artifacts-section').hidden = (run.artifacts ?? []).length === 0;
}

function artifactItem({ artifact_type: type, data }) {
  const note = element('span', { className: 'muted', textContent: ` ${type.toLowerCase().replaceAll('_', ' ')}` });
  const name = data.title || data.filename || data.url || data.description || type;
  const size = data.size_bytes === undefined ? '' : `, ${data.size_bytes.toLocaleString()} bytes`;
  note.append(size);
  if (type === 'FILE' || type === 'SCREENSHOT') {
    const button = element('button', { type: 'button', className: 'link', textContent: name });
    button.addEventListener('click', () => download(data.artifact_uid));
    return element('li', {}, button, note);
  }
  if (type === 'PLAN') {
    const text = element('pre', { textContent: 'Loading …' });
    const details = element('details', {}, element('summary', { textContent: name }), text);
    details.addEventListener(
      'toggle',
      () =>
        read(`/artifacts/${data.artifact_uid}`).then(
          (plan) => {
            text.textContent = plan.data.content;
          },
          (error) => {
            text.textContent = error.message;
          },
        ),
      { once: true },
    );
    return element('li', {}, details, note);
  }
  const isWeb = /^https?:\/\//i.test(data.url ?? '');
  return element(
    'li',
    {},
    isWeb ? element('a', { href: data.url, rel: 'noreferrer noopener', target: '_blank', textContent: name }) : name,
    note,
  );
}

async function download(artifactUid) {
  try {
    const artifact = await read(`/artifacts/${artifactUid}`);
    // A signed URL of this artifact alone: the key stays out of addresses.
    location.assign(artifact.data.download_url);
  } catch (error) {
    by('problem').textContent = error.message;
  }
}

function showTimelineEvent(event) {
  const { payload = {} } = event;
  const words = event.event_type.replace(/^oz_/, '').replaceAll('_', ' ');
  const exit = payload.exit_code === undefined || payload.exit_code === 0 ? '' : `, exit code ${payload.exit_code}`;
  const duration = payload.duration_ms === undefined ? '' : `, ${Math.round(payload.duration_ms)} ms`;
  const name = payload.name ? `: ${payload.name}` : '';
  by('timeline').append(
    element(
      'li',
      {},
      element('time', { dateTime: event.occurred_at, textContent: timeText(event.occurred_at) }),
      words + name + exit + duration,
    ),
  );
}

// ── The conversation, as it grows ────────────────────────────────────────────────────────────────────────────────

const texts = new Map();
const actions = new Map();

/** Keeps the end of the page in view for who is there already. */
function append(node) {
  const page = document.scrollingElement;
  const isAtEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
  by('conversation').append(node);
  if (isAtEnd && by('view').dataset.live) page.scrollTop = page.scrollHeight;
}

function say(role, text, id) {
  const known = id && texts.get(id);
  if (known) {
    known.append(text);
    return;
  }
  const body = element('span', { textContent: text });
  const article = element(
    'article',
    { className: 'said' },
    element('span', { className: 'who', textContent: role }),
    body,
  );
  article.dataset.role = role;
  if (id) texts.set(id, body);
  append(article);
}

const inputText = (input) => {
  if (typeof input === 'string') return input;
  const command = input?.command ?? input?.path ?? input?.query;
  return typeof command === 'string' ? command : JSON.stringify(input);
};

function beginAction(id, name, input) {
  const known = actions.get(id);
  if (known) {
    // Told again when more of its input is known.
    known.name.textContent = name;
    known.input.textContent = inputText(input) ?? '';
    return;
  }
  const outcome = element('span', { className: 'outcome', textContent: ' running' });
  const output = element('pre', { hidden: true });
  const title = element('strong', { textContent: name });
  const code = element('code', { textContent: inputText(input) ?? '' });
  const summary = element('summary', {}, title, ' ', code, outcome);
  const details = element('details', { className: 'act', open: true }, summary, output);
  details.dataset.state = 'running';
  actions.set(id, { details, outcome, output, name: title, input: code });
  append(details);
}

function addOutput(id, text) {
  const action = actions.get(id);
  if (!action) return;
  action.output.hidden = false;
  action.output.append(text);
}

function endAction(id, state, output, exitCode, durationMs) {
  const action = actions.get(id);
  if (!action) return;
  action.details.dataset.state = state;
  const exit = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  const duration = durationMs === undefined ? '' : `, ${durationText(durationMs)}`;
  action.outcome.textContent = ` ${state}${exit}${duration}`;
  if (output === undefined) return;
  action.output.textContent = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
  action.output.hidden = action.output.textContent === '';
}

function applyAgentEvent(event) {
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
      return endAction(event.action_id, event.state, event.output, event.exit_code, event.duration_ms);
    case 'blocked':
      return say('question', event.request.title);
    case 'decided':
      return showDecision(event);
    default:
  }
}

/** What a policy allows without asking anybody is no news. */
function showDecision({ decision, by: whose, message, title }) {
  if (decision === undefined || (whose === 'policy' && decision === 'approve')) return;
  const words = { approve: 'approved', deny: 'denied', answer: 'answered' }[decision] ?? decision;
  say('decision', `${words} by a ${whose}${message ? `: ${message}` : ''}${whose === 'policy' ? `: ${title}` : ''}`);
}

function clearStory() {
  by('conversation').replaceChildren();
  by('timeline').replaceChildren();
  texts.clear();
  actions.clear();
}

function showBlock(role, block) {
  if (block.type === 'text') say(role, block.text);
  else if (block.type === 'action') beginAction(block.id, block.name, block.input);
  else if (block.type === 'action_result')
    endAction(block.action_id, block.state, block.output, block.exit_code, block.duration_ms);
  else if (block.type === 'event' && block.data?.request?.request_id !== undefined) {
    const { request, ...decided } = block.data;
    if (decided.by !== 'policy') say('question', request.title);
    showDecision({ ...decided, title: request.title });
  }
}

function showSteps(steps) {
  for (const step of steps) {
    for (const message of step.messages) for (const block of message.content) showBlock(message.role, block);
    showSteps(step.steps);
  }
}

// ── Following the run ────────────────────────────────────────────────────────────────────────────────────────────

async function refreshRun() {
  const run = await read(`/runs/${runId}`);
  showRun(run);
  return run;
}

function applyLiveEvent(event) {
  if (event.type === 'timeline') showTimelineEvent(event.event);
  else if (event.type === 'conversation') applyAgentEvent(event.event);
  else {
    showState(event.state, event.status_message);
    // The event does not say what the run waits for. After an interrupt that is a message.
    if (waiting.includes(event.state) || event.state === 'SUCCEEDED') keepReason(event.state, 100);
  }
}

/** Reads server-sent events with fetch, because EventSource cannot send the key. Tells the id of each event, when it was shown. */
async function follow(lastId, onBytes, onId) {
  const response = await call(`/runs/${runId}/events`, { headers: lastId ? { 'last-event-id': lastId } : {} });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const frames = (rest + value).split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      const field = (name) =>
        frame
          .split('\n')
          .find((line) => line.startsWith(`${name}:`))
          ?.slice(name.length + 1)
          .trim();
      const data = field('data');
      if (data) applyLiveEvent(JSON.parse(data));
      const id = field('id');
      if (id) onId(id);
    }
  }
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** For networks that hold streams back: reads everything again now and then. */
async function poll() {
  by('live').textContent = 'updated every few seconds';
  for (;;) {
    const [run, timeline, conversation] = await Promise.all([
      refreshRun(),
      read(`/runs/${runId}/timeline`),
      read(`/runs/${runId}/conversation`).catch((error) => {
        if (error.status === 404) return { steps: [] };
        throw error;
      }),
    ]);
    clearStory();
    timeline.events.forEach(showTimelineEvent);
    showSteps(conversation.steps);
    if (terminal.includes(run.state)) return;
    await wait(pollMs);
  }
}

/**
 * In the sandbox of a failed setup something may go on. False: it is gone. `seen` is the run as it was before its
 * stream was read: what has changed since then may not have been in the stream.
 */
async function untilTalkedTo(seen, ended) {
  let now = ended;
  while (now.status_message?.session_debug_until) {
    if (now.updated_at !== seen.updated_at) return true;
    await wait(pollMs);
    now = await refreshRun();
  }
  return now.updated_at !== ended.updated_at;
}

async function watch() {
  let lastId = '';
  let silent = 0;
  for (;;) {
    const run = await refreshRun();
    let hasBytes = false;
    by('live').textContent = terminal.includes(run.state) ? '' : 'live';
    if (!terminal.includes(run.state)) by('view').dataset.live = 'true';
    try {
      await follow(
        lastId,
        () => {
          hasBytes = true;
        },
        (id) => {
          lastId = id;
        },
      );
    } catch (error) {
      if (error instanceof Refused && error.status === 410) {
        lastId = '';
        clearStory();
        continue;
      }
      if (error instanceof Refused && error.status !== 404 && error.status < 500) throw error;
    }
    silent = hasBytes ? 0 : silent + 1;
    const after = await refreshRun();
    if (terminal.includes(after.state) && hasBytes && !(await untilTalkedTo(run, after))) break;
    if (silent >= 2) {
      await poll();
      break;
    }
    await wait(500);
  }
  by('live').textContent = '';
}

// ── Key ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function askForKey(problem = '') {
  sessionStorage.removeItem(keyName);
  by('view').hidden = true;
  by('forget').hidden = true;
  by('key-form').hidden = false;
  by('key-problem').textContent = problem;
  by('key').value = '';
  by('key').focus();
}

async function open() {
  by('key-form').hidden = true;
  by('forget').hidden = false;
  try {
    clearStory();
    await refreshRun();
    by('view').hidden = false;
    await watch();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return askForKey('This key is not valid.');
    if (error instanceof Refused && error.status === 404)
      return askForKey('No such run, or the key belongs to another team.');
    by('view').hidden = false;
    by('problem').textContent = `${error.message} Reload the page to try again.`;
  }
}

by('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(keyName, by('key').value.trim());
  open();
});
by('forget').addEventListener('click', () => {
  sessionStorage.removeItem(keyName);
  location.reload();
});
if (sessionStorage.getItem(keyName)) open();
else askForKey();

/** Follows the run with its live stream. If a network buffers streams, reads everything again at intervals. */
import { call, Refused, read, runId } from './api.js';
import { showControls } from './controls.js';
import { applyAgentEvent, clearStory, setModel, showSteps } from './conversation.js';
import { by } from './elements.js';
import { isTerminal, isWaiting, showAgent, showChildren, showRun, showState } from './show-run.js';
import { showTimelineEvent } from './timeline.js';

const pollMs = 3000;
/** How often an ended run is read again: another person may continue it. */
const endedPollMs = 15_000;

let wake = () => undefined;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for some time, or until somebody acts in this page. */
const waitOrWake = (ms) =>
  new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, ms);
  });

let reasonTimer;

/** Reads and shows the run and its buttons. Repeats this while the run waits, because the reason changes without an event. */
export async function refreshRun() {
  const run = await read(`/agent/runs/${runId}`);
  showRun(run);
  showControls(run);
  clearTimeout(reasonTimer);
  if (isWaiting(run.state)) reasonTimer = setTimeout(() => refreshRun().catch(() => undefined), pollMs);
  return run;
}

/** Reads the run again after an action in this page, and follows it again if it had ended. */
export async function refreshAfterAction() {
  await refreshRun();
  wake();
}

let isRefreshPlanned = false;
/** Reads the run once for events that arrive together. */
function refreshSoon() {
  if (isRefreshPlanned) return;
  isRefreshPlanned = true;
  setTimeout(() => {
    isRefreshPlanned = false;
    refreshRun()
      .then(showChildren)
      .catch((error) => {
        by('problem').textContent = error.message;
      });
  }, 100);
}

function applyTimelineEvent(event) {
  showTimelineEvent(event);
  if (event.event_type !== 'agent_started' || !event.payload) return;
  showAgent(event.payload);
  setModel(event.payload.model_id);
}

function applyLiveEvent(event) {
  if (event.type === 'timeline') applyTimelineEvent(event.event);
  else if (event.type === 'conversation') {
    applyAgentEvent(event.event);
    if (event.event.type === 'blocked' || event.event.type === 'decided') refreshSoon();
  } else {
    showState(event.state, event.state === 'BLOCKED' ? '' : event.status_message);
    refreshSoon();
  }
}

/** Reads server-sent events with fetch, because EventSource cannot send the key. Reports the id of each event that was shown. */
async function follow(lastId, onBytes, onId) {
  const response = await call(`/agent/runs/${runId}/events`, { headers: lastId ? { 'last-event-id': lastId } : {} });
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

/** Reads everything again every few seconds until the run has ended. */
async function poll() {
  by('live').textContent = 'updated every few seconds';
  for (;;) {
    const [run, timeline, conversation] = await Promise.all([
      refreshRun(),
      read(`/agent/runs/${runId}/timeline`),
      read(`/agent/runs/${runId}/conversation`).catch((error) => {
        if (error.status === 404) return { steps: [] };
        throw error;
      }),
    ]);
    clearStory();
    timeline.events.forEach(applyTimelineEvent);
    showSteps(conversation.steps);
    await showChildren();
    if (isTerminal(run.state)) return run;
    await waitOrWake(pollMs);
  }
}

/**
 * Returns when an ended run has changed because a message came. `seen` is the run as it was before its stream was read: later changes
 * may not have been in the stream.
 */
async function untilChanged(seen, ended) {
  let now = ended;
  while (now.updated_at === seen.updated_at) {
    await waitOrWake(now.status_message?.session_debug_until ? pollMs : endedPollMs);
    if (!document.hidden) now = await refreshRun();
  }
}

/** Follows the run for as long as the page is open. @throws Refused if the key ends or the run is deleted */
export async function watch() {
  let lastId = '';
  let silent = 0;
  for (;;) {
    const run = await refreshRun();
    await showChildren();
    let hasBytes = false;
    by('live').textContent = isTerminal(run.state) ? '' : 'live';
    by('view').dataset.live = isTerminal(run.state) ? '' : 'true';
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
    const ended = silent >= 2 ? await poll() : after;
    by('live').textContent = '';
    if (isTerminal(ended.state) && (hasBytes || silent >= 2)) await untilChanged(hasBytes ? run : ended, ended);
    else await wait(500);
  }
}

/** Follows the run with its live stream. If a network buffers streams, reads everything again at intervals. */
import { call, Refused, read, runId } from './api.js';
import { showControls } from './controls.js';
import { applyAgentEvent, clearStory, setModel, showSteps } from './conversation.js';
import { by } from './elements.js';
import { insist, mayPass } from './insist.js';
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
let reads = 0;
let shownRead = 0;

/**
 * Reads and shows the run and its buttons. Repeats this while the run waits, because the reason changes without an event. Does not show
 * the answer to a read that began before the one whose answer is shown: several reads may be under way.
 */
export async function refreshRun() {
  reads += 1;
  const number = reads;
  const run = await read(`/agent/runs/${runId}`);
  if (number < shownRead) return run;
  shownRead = number;
  showRun(run);
  showControls(run);
  clearTimeout(reasonTimer);
  if (isWaiting(run.state)) reasonTimer = setTimeout(() => insist(refreshRun).catch(() => undefined), pollMs);
  return run;
}

/** Reads the run again after an action in this page, and follows it again if it had ended. */
export async function refreshAfterAction() {
  await insist(refreshRun);
  wake();
}

/** A read that takes longer does not hold up the next one. */
const slowReadMs = 5_000;
let isRefreshDue = false;
let isRefreshing = false;
let refreshes = 0;

/** Reads the run once for events that arrive together, and again for those that arrive meanwhile. */
async function refreshSoon() {
  isRefreshDue = true;
  if (isRefreshing) return;
  isRefreshing = true;
  while (isRefreshDue) {
    await wait(100);
    isRefreshDue = false;
    refreshes += 1;
    const number = refreshes;
    // One that waits to try again leaves that to a later one.
    const refresh = async () => number === refreshes && refreshRun().then(showChildren);
    const refreshed = insist(refresh).catch((error) => {
      by('problem').textContent = error.message;
    });
    await Promise.race([refreshed, wait(slowReadMs)]);
  }
  isRefreshing = false;
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

/** Resolves when the page is in view. */
async function inView() {
  while (document.hidden)
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
}

/**
 * Reads server-sent events with fetch, because EventSource cannot send the key. Reports the id of each event that was shown. Returns
 * whether it ended because the page is no longer in view: browsers open six connections to a service that speaks HTTP/1.1, for all tabs
 * together, and streams in hidden tabs would leave none for a further tab, or for a button.
 */
async function follow(lastId, onBytes, onId) {
  const view = new AbortController();
  const leave = () => document.hidden && view.abort();
  document.addEventListener('visibilitychange', leave);
  try {
    await readStream(lastId, onBytes, onId, view.signal);
  } catch (error) {
    if (!view.signal.aborted) throw error;
  } finally {
    document.removeEventListener('visibilitychange', leave);
  }
  return view.signal.aborted;
}

async function readStream(lastId, onBytes, onId, signal) {
  const headers = lastId ? { 'last-event-id': lastId } : {};
  const response = await call(`/agent/runs/${runId}/events`, { headers, signal });
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

/** Returns run, timeline and conversation, and shows the run and the runs that it started. */
const readAll = () =>
  Promise.all([
    refreshRun(),
    read(`/agent/runs/${runId}/timeline`),
    read(`/agent/runs/${runId}/conversation`).catch((error) => {
      if (error.status === 404) return { steps: [] };
      throw error;
    }),
    showChildren(),
  ]);

/** Reads everything again every few seconds until the run has ended. */
async function poll() {
  by('live').textContent = 'updated every few seconds';
  for (;;) {
    const [run, timeline, conversation] = await insist(readAll);
    clearStory();
    timeline.events.forEach(applyTimelineEvent);
    showSteps(conversation.steps);
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
    if (!document.hidden) now = await insist(refreshRun);
  }
}

/** Follows the run for as long as the page is open. @throws Refused if the key ends or the run is deleted */
export async function watch() {
  let lastId = '';
  let silent = 0;
  for (;;) {
    await inView();
    const run = await insist(refreshRun);
    await insist(showChildren);
    let hasBytes = false;
    by('live').textContent = isTerminal(run.state) ? '' : 'live';
    by('view').dataset.live = isTerminal(run.state) ? '' : 'true';
    try {
      const isHidden = await follow(
        lastId,
        () => {
          hasBytes = true;
        },
        (id) => {
          lastId = id;
        },
      );
      if (isHidden) continue;
    } catch (error) {
      by('live').textContent = '';
      if (error instanceof Refused && error.status === 410) {
        lastId = '';
        clearStory();
        continue;
      }
      if (error instanceof Refused && error.status !== 404 && !mayPass(error)) throw error;
    }
    silent = hasBytes ? 0 : silent + 1;
    const after = await insist(refreshRun);
    const ended = silent >= 2 ? await poll() : after;
    by('live').textContent = '';
    if (isTerminal(ended.state) && (hasBytes || silent >= 2)) await untilChanged(hasBytes ? run : ended, ended);
    else await wait(500);
  }
}

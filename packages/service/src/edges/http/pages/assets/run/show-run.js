/** Shows the run itself: its state, facts, artifacts and the runs around it. */
import { read, runId } from './api.js';
import { announce, by, element } from './elements.js';
import { showMarkdown } from './markdown.js';
import { durationText, isoMilliseconds } from './timeline.js';
import { visible } from './visible.js';

const terminal = ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'];
export const isTerminal = (state) => terminal.includes(state);

const waiting = ['QUEUED', 'PENDING', 'CLAIMED'];
/** Returns true if the run has not begun: its status message says what it waits for. */
export const isWaiting = (state) => waiting.includes(state);

let shown;
/** Harness and model that the agent started with. */
let agent = {};

/** Returns the run as it was read last. */
export const shownRun = () => shown;

export function showState(state, message) {
  const before = by('state').textContent;
  by('state').textContent = state;
  by('state').dataset.state = state;
  by('message').hidden = !message;
  by('message').textContent = message ?? '';
  by('message').dataset.tone = state === 'FAILED' || state === 'ERROR' ? 'bad' : '';
  if (before && before !== state) announce(`The run is ${state}. ${message ?? ''}`);
}

function showFacts(run) {
  const usage = run.request_usage;
  const facts = {
    Harness: agent.harness ?? run.agent_config?.harness?.type ?? 'oz',
    Model: agent.model_id ?? run.agent_config?.model_id ?? 'the default model',
    Created: new Date(run.created_at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' }),
    'Run time': durationText(isoMilliseconds(run.run_time ?? 'PT0S')),
    By: run.creator?.display_name ?? run.creator?.uid,
    Source: run.source,
    Tokens: usage?.total_tokens?.toLocaleString(),
    Cost: usage?.inference_cost_usd === undefined ? undefined : `$${usage.inference_cost_usd.toFixed(4)}`,
    Name: run.agent_config?.name,
    Run: run.run_id,
  };
  by('facts').replaceChildren(
    ...Object.entries(facts)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) =>
        element(
          'div',
          { className: name === 'Run' || name === 'Name' ? 'whole' : '' },
          element('dt', { textContent: name }),
          element('dd', { textContent: value }),
        ),
      ),
  );
}

/** Shows with which harness and model the agent started. */
export function showAgent(started) {
  agent = started;
  if (shown) showFacts(shown);
}

export function showRun(run) {
  shown = run;
  document.title = `${run.title} · Runyard`;
  by('title').textContent = run.title;
  const asked = run.blocked_on && `The agent asks: ${run.blocked_on.title}`;
  // The form shows the question of a BLOCKED run.
  showState(run.state, run.state === 'BLOCKED' ? '' : [run.status_message?.message, asked].filter(Boolean).join('\n'));
  if (by('prompt').dataset.run !== run.run_id) showMarkdown(by('prompt'), run.prompt);
  by('prompt').dataset.run = run.run_id;
  showFacts(run);
  const withheld = (run.withheld ?? []).map(({ reason }) => element('li', { textContent: visible(reason) }));
  by('withheld').replaceChildren(...withheld);
  by('withheld-section').hidden = withheld.length === 0;
  showArtifacts(run.artifacts ?? []);
  by('artifacts-section').hidden = (run.artifacts ?? []).length === 0;
  by('parent').hidden = !run.parent_run_id;
  if (run.parent_run_id) by('parent').firstElementChild.href = `/runs/${encodeURIComponent(run.parent_run_id)}`;
}

const maxChildren = 100;

/** Reads and shows the runs that this run started. */
export async function showChildren() {
  const query = `ancestor_run_id=${encodeURIComponent(runId)}&sort_by=created_at&sort_order=asc&limit=${maxChildren}`;
  const { runs, page_info: page } = await read(`/agent/runs?${query}`);
  by('children-section').hidden = runs.length === 0;
  by('children').replaceChildren(
    ...runs.map((run) => {
      const state = element('span', { className: 'state', textContent: run.state });
      state.dataset.state = run.state;
      // Opens the link in this tab, because another tab does not have the key.
      const link = element('a', { href: `/runs/${encodeURIComponent(run.run_id)}`, textContent: visible(run.title) });
      return element('li', {}, link, ' ', state);
    }),
    ...(page.has_next_page ? [element('li', { className: 'muted', textContent: 'There are more.' })] : []),
  );
}

let artifactItems = new Map();

/** Shows the artifacts. The item of one that has not changed stays, because a person may have opened it. */
function showArtifacts(artifacts) {
  const items = new Map();
  for (const artifact of artifacts) {
    const key = JSON.stringify(artifact);
    items.set(key, artifactItems.get(key) ?? artifactItem(artifact));
  }
  const isSame = items.size === artifactItems.size && [...items.keys()].every((key) => artifactItems.has(key));
  artifactItems = items;
  if (!isSame) by('artifacts').replaceChildren(...items.values());
}

function artifactItem({ artifact_type: type, data }) {
  const note = element('span', { className: 'muted', textContent: ` ${type.toLowerCase().replaceAll('_', ' ')}` });
  const name = visible(data.title || data.filename || data.url || data.description || type);
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
        read(`/agent/artifacts/${data.artifact_uid}`).then(
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
    const artifact = await read(`/agent/artifacts/${artifactUid}`);
    // Uses a signed URL of this artifact alone, so that the key is in no address.
    location.assign(artifact.data.download_url);
  } catch (error) {
    by('problem').textContent = error.message;
  }
}

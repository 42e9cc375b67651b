import { by, element } from './elements.js';

const words = {
  oz_run_created: 'run created',
  oz_run_claimed: 'claimed by a worker',
  worker_container_ready: 'sandbox ready',
  shared_session_started: 'session started',
  agent_started: 'agent started',
  oz_run_done: 'run succeeded',
  oz_run_blocked: 'waits for a person',
  oz_run_cancelled: 'run cancelled',
  oz_run_failed: 'run failed',
  oz_run_errored: 'run ended with an error',
  vm_shutdown: 'sandbox closed',
  setup_step_started: 'setup began',
  setup_step_finished: 'setup finished',
  followup_received: 'message received',
  execution_retried: 'tried again',
  execution_resumed: 'resumed in a new sandbox',
  output_limit_reached: 'output limit reached',
  model_switched: 'model changed',
  connection_denied: 'connection denied',
  git_push: 'push',
};

/** Returns a duration as people read it, such as "82 ms", "1.8 s", "2 min 41 s" and "3 h 5 min". */
export function durationText(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns the milliseconds of an ISO 8601 duration of hours, minutes and seconds, as the API writes it. */
export function isoMilliseconds(text) {
  const [, hours = 0, minutes = 0, seconds = 0] = /^PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?$/.exec(text) ?? [];
  return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
}

/** One connection, or the number of all. */
const deniedDetails = ({ host, port, message, total }) =>
  total ? [`${total} times in total`] : [port ? `${host}:${port}` : host, message].filter(Boolean);

/** The repository, and each branch with its result. */
const pushDetails = ({ repository, branches = [] }) => [
  repository,
  ...branches.map(({ branch, result, reason }) => [`${branch} ${result}`, reason].filter(Boolean).join(': ')),
];

/** Returns the words for a timeline event. The names in the API speak of containers, which a run may not have. */
function describe({ event_type: type, payload = {} }) {
  const details = [];
  if (payload.backend) details.push(payload.backend === 'none' ? 'no isolation' : payload.backend);
  if (type === 'agent_started') details.push(...[payload.harness, payload.model_id].filter(Boolean));
  if (payload.exit_code) details.push(`exit code ${payload.exit_code}`);
  if (type === 'followup_received' && payload.by) {
    details.push(`from ${payload.by.display_name ?? payload.by.uid}`);
    if (payload.decision) details.push(payload.decision);
  }
  if (type === 'git_push') details.push(...pushDetails(payload));
  if (type === 'connection_denied') details.push(...deniedDetails(payload));
  const refused = payload.network?.refused_hosts ?? [];
  if (refused.length > 0) details.push(`not allowed by the worker: ${refused.join(' ')}`);
  const ms = payload.duration_ms ?? payload.spawn_ms;
  if (typeof ms === 'number') details.push(durationText(ms));
  const name = payload.name ? `: ${payload.name}` : '';
  return [(words[type] ?? type.replaceAll('_', ' ')) + name, ...details].join(', ');
}

export function showTimelineEvent(event) {
  const time = new Date(event.occurred_at);
  by('timeline').append(
    element(
      'li',
      {},
      element('time', {
        dateTime: event.occurred_at,
        title: time.toLocaleString(),
        textContent: time.toLocaleTimeString(),
      }),
      describe(event),
    ),
  );
}

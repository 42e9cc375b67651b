/**
 * The table of all metrics. No other code defines their names, units and labels. The service records these metrics, and
 * `docs/metrics.md` is generated from the table.
 */

import { deniedReasons } from '../egress/denied-reasons.ts';
import { runStates } from '../runs/run-states.ts';
import { signatureSchemeNames } from '../wire/choices.ts';
import { errorCatalogue } from '../wire/error-catalogue.ts';
import type { Metric, MetricLabel } from './metric.ts';

/** Buckets for answers of the service: 5 ms to 10 s. */
const answerSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Buckets for starts and waits: 50 ms to an hour. */
const waitSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
/** Buckets for the work of agents and models: 1 s to 4 hours. */
const workSeconds = [1, 2.5, 5, 10, 30, 60, 120, 300, 900, 1800, 3600, 14_400];

const pool: MetricLabel = {
  description: '`hosted` for the hosted pool, else the name of a pool of RUNYARD_METRICS_POOLS',
  values: { known: '`hosted` and the names of RUNYARD_METRICS_POOLS', atMost: 100 },
};
const team: MetricLabel = {
  description: 'UID of one of 50 teams, first those with the highest costs; all others together are `other`',
  values: { known: 'teams', atMost: 50 },
};
const model: MetricLabel = {
  description: 'Id of a model that `GET /agent/models` lists',
  values: { known: 'the models that the service offers', atMost: 300 },
};

export const metricsTable = {
  runyard_http_request_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the request to the end of its answer. Streams are left out.',
    labels: {
      surface: {
        description: 'Part of the service that answers',
        values: ['api', 'agent', 'gateway', 'webhooks', 'mcp', 'page'],
      },
      status: { description: 'Class of the status', values: ['2xx', '3xx', '4xx', '5xx'] },
    },
    buckets: answerSeconds,
  },
  runyard_run_transitions_total: {
    kind: 'counter',
    unit: '{transition}',
    description: 'State changes of runs that this process made, by the state that a run got.',
    labels: { state: { description: 'The new state', values: runStates } },
  },
  runyard_run_checks_total: {
    kind: 'counter',
    unit: '{check}',
    description: 'Checks of runs that have ended. A check in a fresh sandbox counts once, for the run that it checks.',
    labels: {
      sandbox: { description: '`fresh`, or `own`: that of the agent', values: ['own', 'fresh'] },
      outcome: { description: 'Outcome of the check', values: ['passed', 'failed'] },
    },
  },
  runyard_run_failures_total: {
    kind: 'counter',
    unit: '{run}',
    description: 'Ends of runs in FAILED or ERROR.',
    labels: {
      state: { description: 'FAILED or ERROR', values: ['FAILED', 'ERROR'] },
      code: { description: 'Error code of the run', values: Object.keys(errorCatalogue) },
    },
  },
  runyard_run_queue_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the request for work (create, follow-up, retry) to its assignment to a worker.',
    labels: { pool },
    buckets: waitSeconds,
  },
  runyard_run_start_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the request for work to the moment at which the harness gets the prompt.',
    labels: {},
    buckets: waitSeconds,
  },
  runyard_run_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the request for work to its end, with queue and start.',
    labels: {
      state: {
        description: 'State at the end',
        values: ['SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED'],
      },
    },
    buckets: workSeconds,
  },
  runyard_queue_depth: {
    kind: 'database',
    unit: '{execution}',
    description: 'Executions that wait for a worker and may start now, at most 100,000 of each pool.',
    labels: { pool },
  },
  runyard_queue_age_seconds: {
    kind: 'database',
    unit: 's',
    description: 'Time for which the oldest of these executions has been waiting; 0 if none waits.',
    labels: { pool },
  },
  runyard_workers: {
    kind: 'database',
    unit: '{worker}',
    description: 'Connections of workers.',
    labels: { pool },
  },
  runyard_workers_unable: {
    kind: 'database',
    unit: '{worker}',
    description: 'Connected workers that take no runs because of a problem, such as a full disk.',
    labels: { pool },
  },
  runyard_worker_free_bytes: {
    kind: 'database',
    unit: 'By',
    description: 'Free space on the fullest disk of the connected workers.',
    labels: { pool },
  },
  runyard_worker_slots: {
    kind: 'database',
    unit: '{slot}',
    description: 'Slots of connected workers that accept work.',
    labels: { pool },
  },
  runyard_worker_slots_taken: {
    kind: 'database',
    unit: '{slot}',
    description: 'Slots that executions take, assigned or at work.',
    labels: { pool },
  },
  runyard_executions: {
    kind: 'database',
    unit: '{execution}',
    description: 'Executions that have been assigned and have not ended.',
    labels: {
      phase: { description: 'Phase', values: ['assigned', 'claimed', 'running', 'idle', 'stopping'] },
    },
  },
  runyard_sandbox_start_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time that a worker needed to create a sandbox. The count is the number of started sandboxes.',
    labels: {
      backend: { description: 'Sandbox backend', values: ['bubblewrap', 'gvisor', 'docker', 'kubernetes', 'none'] },
    },
    buckets: waitSeconds,
  },
  runyard_sandbox_failures_total: {
    kind: 'counter',
    unit: '{sandbox}',
    description: 'Sandboxes that were not created, did not start or ended badly, as workers report them.',
    labels: {
      phase: { description: 'When it failed', values: ['prepare', 'spawn', 'run'] },
      reason: {
        description: 'Reason',
        values: [
          'agent_exited',
          'agent_not_placed',
          'deadline_exceeded',
          'disk_limit',
          'image_no_access',
          'image_not_found',
          'image_refused',
          'image_too_large',
          'image_wrong_architecture',
          'job_deleted',
          'node_lost',
          'pod_evicted',
          'pod_lost',
          'pod_not_started',
          'pod_unschedulable',
          'sandbox_ended',
          'sandbox_not_prepared',
          'supervisor_lost',
          'worker_lost',
          'worker_stopped',
        ],
      },
    },
  },
  runyard_egress_denied_total: {
    kind: 'counter',
    unit: '{connection}',
    description: 'Connections of sandboxes that were denied.',
    labels: {
      reason: {
        description: 'Reason; `other`: connections to the 21st and later targets of a sandbox',
        values: Object.keys(deniedReasons),
      },
    },
  },
  runyard_model_requests_total: {
    kind: 'counter',
    unit: '{request}',
    description: 'Requests of runs to models.',
    labels: {
      model,
      result: {
        description:
          '`answered`; `refused`: the provider answered 4xx; `failed`: it answered 5xx, broke off or was not reached; `abandoned`: the agent left',
        values: ['answered', 'refused', 'failed', 'abandoned'],
      },
    },
  },
  runyard_model_request_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from a request to a model to the end of the answer.',
    labels: { model },
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  },
  runyard_model_tokens_total: {
    kind: 'counter',
    unit: '{token}',
    description: 'Tokens that models read and wrote for runs.',
    labels: {
      model,
      kind: { description: 'Kind', values: ['input', 'output', 'cache_read', 'cache_write'] },
    },
  },
  runyard_model_cost_dollars_total: {
    kind: 'counter',
    unit: '{USD}',
    description: 'Known cost of requests to models, US dollars.',
    labels: { model },
  },
  runyard_webhook_deliveries_total: {
    kind: 'counter',
    unit: '{delivery}',
    description: 'Deliveries to webhooks.',
    labels: {
      result: {
        description: 'Outcome of the checks',
        values: [
          'accepted',
          'duplicate',
          'handshake',
          'not_found',
          'rate_limited',
          'busy',
          'unauthenticated',
          'invalid_json',
          'cut',
          'too_large',
          'too_slow',
          'ignored',
          'invalid',
        ],
      },
      scheme: {
        description:
          'Signature scheme of the webhook; `token`: it has none; `unknown`: there is no such webhook; `github_app`: an event of a GitHub App',
        values: [...signatureSchemeNames, 'token', 'unknown', 'github_app'],
      },
    },
  },
  runyard_schedule_lateness_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time by which schedules fired after their time.',
    labels: {},
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
  },
  runyard_schedules_overdue_seconds: {
    kind: 'database',
    unit: 's',
    description: 'Time by which the most overdue schedule is late now; 0 if none is.',
    labels: {},
  },
  runyard_subscription_attempts_total: {
    kind: 'counter',
    unit: '{attempt}',
    description: 'Attempts to deliver an event to a subscription.',
    labels: { result: { description: 'Outcome', values: ['delivered', 'failed', 'gone'] } },
  },
  runyard_subscription_attempt_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    description: 'Time of such an attempt.',
    labels: {},
    buckets: answerSeconds,
  },
  runyard_subscription_deliveries_due: {
    kind: 'database',
    unit: '{delivery}',
    description: 'Deliveries to subscriptions whose next attempt is due, at most 100,000.',
    labels: {},
  },
  runyard_authentication_failures_total: {
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that were refused with 401.',
    labels: {
      credential: {
        description: 'Credential that was expected or wrong',
        values: ['none', 'malformed', 'key', 'session', 'run_token', 'worker', 'metrics'],
      },
    },
  },
  runyard_identity_provider_checks_total: {
    kind: 'counter',
    unit: '{check}',
    description: 'Checks whether people can sign in with an identity provider; one a minute for each provider.',
    labels: { result: { description: 'Outcome', values: ['done', 'failed'] } },
  },
  runyard_blob_operations_total: {
    kind: 'counter',
    unit: '{operation}',
    description: 'Operations of the blob store.',
    labels: {
      operation: { description: 'Operation', values: ['put', 'get', 'delete'] },
      result: { description: 'Outcome', values: ['done', 'missing', 'too_large', 'failed'] },
    },
  },
  runyard_blob_written_bytes_total: {
    kind: 'counter',
    unit: 'By',
    description: 'Bytes that were stored in blobs.',
    labels: {},
  },
  runyard_stored_bytes: {
    kind: 'database',
    unit: 'By',
    description: 'Bytes that all teams store.',
    labels: {},
  },
  runyard_ready: {
    kind: 'gauge',
    unit: '1',
    description: '1 if this process accepts requests, as `/readyz` says; otherwise 0.',
    labels: {},
  },
  runyard_backup_age_seconds: {
    kind: 'database',
    unit: 's',
    description: 'Time since the last backup by `runyard backup`. Missing if there was none.',
    labels: {},
  },
  runyard_team_cost_dollars: {
    kind: 'database',
    unit: '{dollar}',
    description: 'Costs of models in this month (UTC).',
    labels: { team },
  },
  runyard_team_failed_runs: {
    kind: 'database',
    unit: '{run}',
    description: 'Runs that ended in FAILED or ERROR in the last hour, at most 10,000.',
    labels: { team },
  },
  runyard_automation_failed_runs: {
    kind: 'database',
    unit: '{run}',
    description: 'Those of these runs that an automation started.',
    labels: {
      automation: {
        description: 'UID of one of 50 automations; all others together are `other`',
        values: { known: 'automations', atMost: 50 },
      },
    },
  },
  runyard_database_connections: {
    kind: 'gauge',
    unit: '{connection}',
    description: 'Connections of the pool of this process.',
    labels: { state: { description: 'State', values: ['busy', 'idle'] } },
  },
  runyard_database_connections_max: {
    kind: 'gauge',
    unit: '{connection}',
    description: 'Connections that the pool may have (RUNYARD_DATABASE_CONNECTIONS).',
    labels: {},
  },
  runyard_database_waiting: {
    kind: 'gauge',
    unit: '{statement}',
    description: 'Statements and transactions that wait for a connection of the pool.',
    labels: {},
  },
  runyard_event_loop_delay_seconds: {
    kind: 'gauge',
    unit: 's',
    description: 'Delay of the event loop of this process since the last reading.',
    labels: { percentile: { description: 'Percentile; 100: the largest delay', values: ['50', '99', '100'] } },
  },
  runyard_process_cpu_seconds_total: {
    kind: 'counter',
    unit: 's',
    description: 'Processor time of this process.',
    labels: {},
  },
  runyard_process_resident_memory_bytes: {
    kind: 'gauge',
    unit: 'By',
    description: 'Resident memory of this process.',
    labels: {},
  },
  runyard_metrics_read_failures_total: {
    kind: 'counter',
    unit: '{reading}',
    description:
      'Readings of gauges that failed, for example because the database was away. The gauges are absent then.',
    labels: {},
  },
} as const satisfies Readonly<Record<string, Metric>>;

type Table = typeof metricsTable;
export type MetricName = keyof Table;
type NamesOf<Kind extends Metric['kind']> = {
  [N in MetricName]: Table[N]['kind'] extends Kind ? N : never;
}[MetricName];
export type CounterName = NamesOf<'counter'>;
export type HistogramName = NamesOf<'histogram'>;
/** Names of the metrics whose value is read when an exporter asks for it. */
export type GaugeName = NamesOf<'gauge' | 'database'>;
/** The values for the labels of a metric. A value that the table does not list counts as `other`. */
export type LabelsOf<N extends MetricName> = { readonly [L in keyof Table[N]['labels']]: string };

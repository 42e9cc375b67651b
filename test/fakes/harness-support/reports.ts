/** Stores the reports that an agent sends to the fake service, for the test to read. */

import { FinishTask } from '@runyard/contract/agent/finish-task';
import { OpenPullRequest } from '@runyard/contract/agent/pull-requests';
import { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { FakeRequest } from './check-request.ts';

export interface FakeArtifact {
  artifact_uid: string;
  artifact_type: string;
  data: Record<string, unknown>;
  /** Uploaded bytes. */
  bytes?: Buffer;
}

interface FakeSnapshot {
  turn: number;
  files: { filename: string; mime_type?: string; size_bytes: number; bytes?: Buffer }[];
}

/** The reports so far. */
export interface FakeReports {
  /** The events that the fake accepted, in order and without repetitions. */
  readonly events: readonly AgentEvent[];
  readonly finished: readonly FinishTask[];
  readonly shutdowns: readonly string[];
  readonly artifacts: readonly FakeArtifact[];
  /** The snapshots that the agent has begun, with the bytes that it has uploaded for their files. */
  readonly snapshots: readonly FakeSnapshot[];
  /**
   * The stored archives of the workspace. `turn` is the number of the turn, and `checkpoint` the number of the checkpoint in this
   * turn.
   */
  readonly workspaces: readonly { turn: number; checkpoint: number | null; session: string | null; bytes: Buffer }[];
  /** Returns the text of all text events with this role. Default: the role of the assistant. */
  text(role?: string): string;
  /** Returns the output of an action in the form that a reader of the conversation sees. */
  output(actionId: string): string;
}

/** Status and body of an answer. If the body is a Buffer, it is sent unchanged, otherwise as JSON. */
export interface FakeAnswer {
  readonly status: number;
  readonly value: unknown;
}

/** First part of the path of all routes that agents call. */
export const prefix = '/api/v1/harness-support';

/** Parses the JSON body of a request. An empty body counts as an empty object. */
export const jsonOf = (body: Buffer): unknown => JSON.parse(body.toString() || '{}');

const ok = (value: unknown): FakeAnswer => ({ status: 200, value });

/**
 * Returns the stored reports and a function `take`. `take` stores and answers a report; for other requests it returns undefined.
 * `fake` returns the URL for uploads and the answer to the report that a turn has ended.
 */
export function keepReports(fake: () => { readonly url: string; readonly next: 'wait' | 'leave' }): {
  readonly reports: FakeReports;
  take(request: FakeRequest): FakeAnswer | undefined;
} {
  const events: AgentEvent[] = [];
  const finished: FinishTask[] = [];
  const shutdowns: string[] = [];
  const artifacts: FakeArtifact[] = [];
  const snapshots: FakeSnapshot[] = [];
  const workspaces: { turn: number; checkpoint: number | null; session: string | null; bytes: Buffer }[] = [];

  /** Applies the events of a batch. Skips events that were applied before, and events after a gap in the numbers. */
  function applyEvents(batch: unknown[]): FakeAnswer {
    for (const value of batch) {
      const event = AgentEvent.parse(value);
      if (event.seq === (events.at(-1)?.seq ?? 0) + 1) events.push(event);
    }
    return ok({ acknowledged: events.at(-1)?.seq ?? 0 });
  }

  function beginSnapshot(snapshot: FakeSnapshot): FakeAnswer {
    const number = snapshots.push(snapshot) - 1;
    const files = snapshot.files.map(({ filename }, index) => ({
      filename,
      upload_url: `${fake().url}/snapshots/${number}/${index}`,
    }));
    return ok({ files });
  }

  function reportArtifact(reported: Pick<FakeArtifact, 'artifact_type' | 'data'>): FakeAnswer {
    const artifact_uid = `artifact-${artifacts.length + 1}`;
    artifacts.push({ artifact_uid, ...reported });
    const uploads = reported.artifact_type === 'FILE' || reported.artifact_type === 'SCREENSHOT';
    return ok({ artifact_uid, ...(uploads ? { upload_url: `${fake().url}/uploads/${artifact_uid}` } : {}) });
  }

  function openPullRequest({ head, repository: { owner, repo } }: OpenPullRequest): FakeAnswer {
    if (head === 'unknown') return { status: 404, value: { title: 'Resource not found', detail: 'Push it first.' } };
    const url = `https://host.example/${owner}/${repo}/pull/${artifacts.length + 1}`;
    const answer = reportArtifact({ artifact_type: 'PULL_REQUEST', data: { url, branch: head } });
    return ok({ ...(answer.value as object), url, branch: head, is_new: true });
  }

  /** Stores the bytes of an upload to an address from `reportArtifact` or `beginSnapshot`. */
  function takeUpload(path: string, bytes: Buffer): FakeAnswer | undefined {
    const [, kind, first, second] = path.split('/');
    if (kind !== 'uploads' && kind !== 'snapshots') return undefined;
    const target =
      kind === 'uploads'
        ? artifacts.find(({ artifact_uid }) => artifact_uid === first)
        : snapshots[Number(first)]?.files[Number(second)];
    if (target === undefined) return { status: 404, value: {} };
    target.bytes = bytes;
    return ok({});
  }

  function take({ method, path, query, body }: FakeRequest): FakeAnswer | undefined {
    switch (`${method} ${path.slice(prefix.length)}`) {
      case 'POST /events':
        return applyEvents((jsonOf(body) as { events: unknown[] }).events);
      case 'POST /finish-task': {
        const { events: last = [], workspace, ...report } = FinishTask.parse(jsonOf(body));
        if (workspace !== undefined)
          workspaces.push({ turn: report.turn ?? 1, checkpoint: null, session: null, bytes: Buffer.alloc(0) });
        finished.push(report);
        return ok({ next: fake().next, ...(last.length === 0 ? {} : (applyEvents(last).value as object)) });
      }
      case 'POST /upload-snapshot':
        return beginSnapshot(jsonOf(body) as FakeSnapshot);
      case 'PUT /workspace':
        workspaces.push({
          turn: Number(query.get('turn')),
          checkpoint: query.has('checkpoint') ? Number(query.get('checkpoint')) : null,
          session: query.get('session_id'),
          bytes: body,
        });
        return ok({});
      case 'POST /report-shutdown': {
        const { reason, exited } = jsonOf(body) as { reason: string; exited?: boolean };
        shutdowns.push(exited ? `exited: ${reason}` : reason);
        return ok({});
      }
      case 'POST /pull-requests':
        return openPullRequest(OpenPullRequest.parse(jsonOf(body)));
      case 'POST /report-artifact':
        return reportArtifact(jsonOf(body) as FakeArtifact);
      default:
        return method === 'PUT' ? takeUpload(path, body) : undefined;
    }
  }

  const text: FakeReports['text'] = (role = 'assistant') =>
    events.map((event) => (event.type === 'text' && event.role === role ? event.text : '')).join('');
  const output: FakeReports['output'] = (actionId) => {
    const result = events.find((event) => event.type === 'action_result' && event.action_id === actionId);
    if (result?.type === 'action_result' && result.output !== undefined) return String(result.output);
    return events
      .map((event) => (event.type === 'action_output' && event.action_id === actionId ? event.text : ''))
      .join('');
  };
  return { reports: { events, finished, shutdowns, artifacts, snapshots, workspaces, text, output }, take };
}

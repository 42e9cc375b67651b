/** Check runs of the fake. Each request adds its annotations, at most 50. */
import { sampleOf } from './check-openapi.ts';
import type { FakeGithubState } from './github.ts';
import { appOf, type FakeCheckRun } from './objects.ts';
import { checkRunOf as foreignOf } from './pulls.ts';
import { type Handler, inRepository, notFound, refuse } from './routes.ts';

const checkRunOf = (check: FakeCheckRun, { app, urls }: FakeGithubState) =>
  sampleOf('check-run', {
    id: check.id,
    head_sha: check.headSha,
    name: check.name,
    status: check.status,
    conclusion: check.conclusion ?? null,
    external_id: check.externalId,
    html_url: `${urls.web}/runs/${check.id}`,
    app: appOf(app, urls),
    output: {
      title: check.title,
      summary: check.summary,
      text: null,
      annotations_count: check.annotations.length,
      annotations_url: `${urls.api}/annotations`,
    },
  });

interface Sent {
  readonly status?: string;
  readonly conclusion?: string;
  readonly output?: { readonly title: string; readonly summary: string; readonly annotations?: readonly object[] };
}

function change(check: FakeCheckRun, { status, conclusion, output }: Sent): void {
  check.status = status ?? check.status;
  check.conclusion = check.status === 'completed' ? conclusion : undefined;
  check.title = output?.title ?? check.title;
  check.summary = output?.summary ?? check.summary;
  check.annotations.push(...(output?.annotations ?? []));
}

const isWrong = ({ status, conclusion, output }: Sent): boolean =>
  (status === 'completed' && conclusion === undefined) || (output?.annotations?.length ?? 0) > 50;

const create: Handler = inRepository('checks', 'write', (state, { body }, repository) => {
  const headSha = String(body.head_sha);
  const isKnown = state.issues.some((each) => each.repository.id === repository.id && each.head === headSha);
  if (!isKnown) return refuse(422, `No commit found for SHA: ${headSha}`);
  if (isWrong(body)) return refuse(422, 'Invalid request.');
  const made: FakeCheckRun = {
    id: state.newId(),
    repository,
    headSha,
    name: String(body.name),
    externalId: String(body.external_id ?? ''),
    status: 'queued',
    title: '',
    summary: '',
    annotations: [],
  };
  change(made, body);
  state.checkRuns.push(made);
  return { status: 201, body: checkRunOf(made, state) };
});

const update: Handler = inRepository('checks', 'write', (state, { parts, body }, repository) => {
  const found = state.checkRuns.find((each) => each.repository.id === repository.id && String(each.id) === parts[2]);
  if (!found) return notFound;
  if (isWrong(body)) return refuse(422, 'Invalid request.');
  change(found, body);
  return { status: 200, body: checkRunOf(found, state) };
});

const list: Handler = inRepository('checks', 'read', (state, request, repository) => {
  const sha = request.parts[2];
  const own = state.checkRuns.filter((each) => each.repository.id === repository.id && each.headSha === sha);
  const others = request.query.has('app_id') ? [] : state.checks.filter((each) => each.sha === sha);
  const check_runs = [
    ...own.map((each) => checkRunOf(each, state)),
    ...others.map((each) => foreignOf(each, state.urls)),
  ];
  return { status: 200, body: { total_count: check_runs.length, check_runs } };
});

export const checkRunHandlers: readonly (readonly [method: string, path: RegExp, work: Handler])[] = [
  ['POST', /^\/repos\/([\w.-]+)\/([\w.-]+)\/check-runs$/, create],
  ['PATCH', /^\/repos\/([\w.-]+)\/([\w.-]+)\/check-runs\/(\d+)$/, update],
  ['GET', /^\/repos\/([\w.-]+)\/([\w.-]+)\/commits\/([0-9a-f]{40})\/check-runs$/, list],
];

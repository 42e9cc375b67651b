/** Uses openapi-fetch with the types that openapi-typescript generates. Prints the values that it read as one line of JSON. */
import createClient from 'openapi-fetch';
import { baseUrl, expectData, key, prompt, waitForEnd } from './driving.js';
import type { paths } from './openapi-typescript.js';

const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });
const name = 'openapi-typescript';

const environment = expectData(
  await api.POST('/agent/environments', { body: { config: { name, setup_commands: ['echo ready'] } } }),
);
const created = expectData(
  await api.POST('/agent/runs', {
    body: { prompt, config: { name, model_id: 'runbook', environment_id: environment.uid } },
  }),
);
const path = { runId: created.run_id };
const run = await waitForEnd(async () => expectData(await api.GET('/agent/runs/{runId}', { params: { path } })));
const listed = expectData(await api.GET('/agent/runs', { params: { query: { name } } }));
const conversation = expectData(await api.GET('/agent/runs/{runId}/conversation', { params: { path } }));
const timeline = expectData(await api.GET('/agent/runs/{runId}/timeline', { params: { path } }));
const newKey = expectData(await api.POST('/keys', { body: { name, kind: 'personal', expires_in: 'never' } }));
const uid = environment.uid;
const read = expectData(await api.GET('/agent/environments/{uid}', { params: { path: { uid } } }));
const environments = expectData(await api.GET('/agent/environments'));
const keys = expectData(await api.GET('/keys'));
console.log(
  JSON.stringify({
    state: run.state,
    artifacts: (run.artifacts ?? []).map((each) => each.artifact_type).sort(),
    listed: listed.runs.length === 1 && listed.runs[0]?.run_id === created.run_id,
    steps: conversation.steps.length,
    timeline: timeline.events[0]?.event_type,
    environment: read.config.name,
    environments: environments.environments.some((each) => each.uid === uid),
    keys: keys.keys.some((each) => each.uid === newKey.uid),
  }),
);

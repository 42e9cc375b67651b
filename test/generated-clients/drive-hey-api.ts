/** Uses the client that @hey-api/openapi-ts generates. Prints the values that it read as one line of JSON. */
import { baseUrl, expectData, key, prompt, waitForEnd } from './driving.js';
import { client } from './hey-api/client.gen.js';
import * as api from './hey-api/sdk.gen.js';

client.setConfig({ baseUrl, auth: key });
const name = 'hey-api';

const environment = expectData(
  await api.createEnvironment({ body: { config: { name, setup_commands: ['echo ready'] } } }),
);
const created = expectData(
  await api.createRun({ body: { prompt, config: { name, model_id: 'runbook', environment_id: environment.uid } } }),
);
const path = { runId: created.run_id };
const run = await waitForEnd(async () => expectData(await api.getRun({ path })));
const listed = expectData(await api.listRuns({ query: { name } }));
const conversation = expectData(await api.getRunConversation({ path }));
const timeline = expectData(await api.getRunTimeline({ path }));
const newKey = expectData(await api.createKey({ body: { name, kind: 'personal' } }));
const uid = environment.uid;
const read = expectData(await api.getEnvironment({ path: { uid } }));
const environments = expectData(await api.listEnvironments());
const keys = expectData(await api.listKeys());
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

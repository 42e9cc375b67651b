/** Tests runs without a language model. All suites of `runs/` use one system; no suite changes data that another suite checks. */
import { afterAll } from 'vitest';
import type { FakeGitHost } from './fakes/git-host.ts';
import { describeArtifacts } from './runs/artifacts.ts';
import { describeEndToEnd } from './runs/end-to-end.ts';
import { describeExamples } from './runs/examples.ts';
import { describeGeneratedClients } from './runs/generated-clients.ts';
import { describePrivateRepositories, startPrivateHost } from './runs/private-repositories.ts';
import { describeSchedulesCommandLine } from './runs/schedules-command-line.ts';
import { describeWebhooksCommandLine } from './runs/webhooks-command-line.ts';
import { endCommands } from './support/command-line.ts';
import { describeSystem, later } from './support/describe-system.ts';

let host: FakeGitHost | undefined;
afterAll(async () => {
  endCommands();
  await host?.close();
});

const options = async () => {
  host = await startPrivateHost();
  return { env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_WEBHOOK_PORT: '0' } };
};

describeSystem('runs', options, (system) => {
  describeEndToEnd(system);
  describeArtifacts(system);
  describeExamples(system);
  describePrivateRepositories(
    system,
    later(() => host),
  );
  describeSchedulesCommandLine(system, () => {
    describeWebhooksCommandLine(system);
    describeGeneratedClients(system);
  });
});
